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
    return former || read_value_of(row->type, row->ranges, row->words, bytes_of(step->value)) == GRANTED
               ? row
               : NULL;
}

/* What starts at boot is granted for the services that may be turned on and off. */
static const struct known_knob *row_of_unit(const struct step *step) {
    const bool is_good = is_same(step->interface, "-") && is_same(step->knob, step->target) &&
                         (*step->value == '@' || is_word_of(step->value, "enabled disabled"));
    return is_good ? knob_of_target("service", step->target) : NULL;
}

enum outcome in_catalogue(const struct step *step, struct listed *listed) {
    *listed = (struct listed){.form = OF_ROW, .interfaces = ""};
    if (is_same(step->kind_name, "stored")) {
        listed->form = OF_FILE;
        return made_checked(step, &listed->interfaces);
    }
    if (is_same(step->kind_name, "unit")) {
        listed->form = OF_UNIT;
        listed->row = row_of_unit(step);
        return listed->row ? DONE : complain("%s is no service of the catalogue", step->target);
    }
    listed->row = row_of(step);
    if (!listed->row)
        return complain("%s is not in the catalogue with this value", step->knob);
    if (step->known->of_interface || !is_same(step->interface, "-"))
        listed->interfaces = step->interface;
    return DONE;
}

enum outcome grant(const struct step *step, uid_t caller, struct granted *granted) {
    struct listed listed;
    *granted = (struct granted){step, FAILED};
    if (!step->known)
        return complain("this guard knows no access kind %s", step->kind_name);
    if (caller) {
        if (in_catalogue(step, &listed) != DONE)
            return complain("not through sudo: %s", complaint("it is not in the catalogue"));
        struct bytes rest = bytes_of(listed.interfaces), word;
        while (next_word(&rest, &word))
            if (scope_grants_interface(kept(word)) != GRANTED)
                return complain("not through sudo: %s is not one of the interfaces in " SCOPE_PLACE,
                                kept(word));
    }
    granted->mark = GRANTED;
    return GRANTED;
}
