#include "guard/step.h"

#include "guard/kind.h"
#include "guard/kind/made.h"
#include "guard/scope.h"

#include <string.h>

static char *kept(struct bytes bytes) { return keep(bytes.at, bytes.size); }

static struct bytes bytes_of(const char *text) { return (struct bytes){text, strlen(text)}; }

enum outcome plan_read(struct bytes text, struct plan *plan) {
    struct plan_line *lines = take(PLAN_LINES * sizeof *lines);
    size_t count;
    if (read_plan(text, lines, &count) != GRANTED)
        return complain("what is to be set is not a plan");
    *plan = (struct plan){take(count * sizeof *plan->steps), count, kept(text)};
    for (size_t i = 0; i < count; i++)
        plan->steps[i] = (struct step){.number = i + 1,
                                       .knob = kept(lines[i].knob),
                                       .interface = kept(lines[i].interface),
                                       .target = kept(lines[i].target),
                                       .value = kept(lines[i].value),
                                       .known = kind_named(lines[i].kind),
                                       .kind_name = kept(lines[i].kind)};
    return DONE;
}

/* The row of the table that says that it may be set so; NULL where none does. */
static const struct known_knob *row_of(const struct step *step) {
    const struct known_knob *row = knob_at(bytes_of(step->knob), bytes_of(step->kind_name),
                                           bytes_of(step->interface), bytes_of(step->target));
    if (!row)
        return NULL;
    const bool former = *step->value == '@'; /* what was before: `rollback` alone makes such a step */
    return former || read_value_of(row->type, row->range, row->words, bytes_of(step->value)) == GRANTED
               ? row
               : NULL;
}

/* What starts at boot is granted for the services that may be turned on and off. */
static bool is_unit_of_table(const struct step *step) {
    const struct known_knob *row = knob_of_target("service", step->target);
    return row && is_same(step->interface, "-") && is_same(step->knob, step->target) &&
           (*step->value == '@' || is_word_of(step->value, "enabled disabled"));
}

/* Of what outlasts a boot; the interfaces that it is of in `interfaces`. */
static enum outcome grant_lasting(const struct step *step, const char **interfaces) {
    *interfaces = "";
    if (is_same(step->kind_name, "unit"))
        return is_unit_of_table(step) ? DONE : complain("%s is no service of the catalogue", step->target);
    return made_checked(step, interfaces);
}

static enum outcome grant_interface(const char *interface) {
    return scope_grants_interface(interface) == GRANTED
               ? GRANTED
               : complain("not through sudo: %s is not one of the interfaces in " SCOPE_PLACE, interface);
}

enum outcome grant(const struct step *step, uid_t caller, struct granted *granted) {
    *granted = (struct granted){step, FAILED};
    if (!step->known)
        return complain("this guard knows no access kind %s", step->kind_name);
    if (caller && is_word_of(step->kind_name, "stored unit")) {
        const char *interfaces;
        if (grant_lasting(step, &interfaces) != DONE)
            return complain("not through sudo: %s", complaint("it is no file that keeps settings"));
        struct bytes rest = bytes_of(interfaces), word;
        while (next_word(&rest, &word))
            if (grant_interface(kept(word)) != GRANTED)
                return FAILED;
    } else if (caller) {
        if (!row_of(step))
            return complain("not through sudo: %s is not in the catalogue with this value", step->knob);
        if (step->known->of_interface || !is_same(step->interface, "-"))
            if (grant_interface(step->interface) != GRANTED)
                return FAILED;
    }
    granted->mark = GRANTED;
    return GRANTED;
}
