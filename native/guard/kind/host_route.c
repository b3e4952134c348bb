/* The route to one address, TARGET: `via GATEWAY dev INTERFACE src ADDRESS`, or `none`. With `src` packets
 * keep the address by which the others know the node: answers would not find the way back to one of a cable.
 */
#include "guard/kind.h"
#include "guard/kind/files.h"
#include "guard/kind/routes.h"
#include "guard/read/ip.h"
#include "guard/tool.h"

#include <string.h>

#define RTO "rto_min"
#define NOWHERE "none"

static enum outcome checked(const struct step *step) {
    const struct bytes target = {step->target, strlen(step->target)};
    return bytes_only(target, ".") ? DONE : complain("%s is no address", step->target);
}

static void add_word(void *of, struct bytes word) {
    struct text *text = of;
    text_print(text, "%s%s", text->size ? " " : "", keep(word.at, word.size));
}

static const char *key_of_rto(const struct step *step) { return print("%s " RTO, step->target); }

/* As `ip` takes it; a route with a metric is somebody else's, and comes after this one. The timeout is set by
 * another kind of all routes of a card, and is kept for a route that has to be made anew. */
static enum outcome save(const struct step *step, struct state *state) {
    struct text said = {0};
    const char *const asked[] = {"ip",    "-4",   "route", "show", "exact", print("%s/32", step->target),
                                 "table", "main", NULL};
    if (checked(step) != DONE || routes_asked(&said, asked) != DONE)
        return FAILED;
    struct bytes rest = {text_string(&said), said.size}, line;
    while (next_line(&rest, &line)) {
        struct route_line route;
        if (read_route(line, RTO, &route) != DONE || route.metric.size)
            continue;
        if (route.is_other)
            return complain("the route to %s that is there cannot be put back as it was", step->target);
        struct text words = {0};
        next_word(&line, &route.destination);
        each_route_word(line, RTO, add_word, &words);
        state_add(state, step->target, text_string(&words));
        if (route.property.size)
            state_add_flagged(state, key_of_rto(step), keep(route.property.at, route.property.size),
                              ITEM_VOLATILE);
        return DONE;
    }
    state_add(state, step->target, NOWHERE);
    return DONE;
}

static enum outcome make(const struct step *step, const char *value, const char *rto) {
    const char *words[48] = {"ip", "-4", "route", "replace", print("%s/32", step->target)};
    const struct names names = words_of(value);
    size_t count = 5;
    if (names.count + count + 3 > COUNT(words))
        return complain("the route to %s has too many words", step->target);
    for (size_t i = 0; i < names.count; i++)
        words[count++] = names.at[i];
    if (rto && !is_word_of(RTO, value)) { /* earlier guards kept it with the rest */
        words[count++] = RTO;
        words[count++] = rto;
    }
    return tool_run(NULL, words);
}

/* `gone_rto` is what one had that is not there any more. */
static enum outcome set(const struct step *step, const char *value, const char *gone_rto) {
    struct state now = {0};
    if (save(step, &now) != DONE)
        return FAILED;
    const bool is_there = !is_same(state_value(&now, step->target), NOWHERE);
    if (!is_same(value, NOWHERE))
        return make(step, value, is_there ? state_value(&now, key_of_rto(step)) : gone_rto);
    return is_there ? RUN("ip", "-4", "route", "del", print("%s/32", step->target)) : DONE;
}

static enum outcome put(const struct step *step) { return set(step, step->value, NULL); }

static enum outcome restore(const struct step *step, const struct state *items, const struct state *before,
                            const struct state *after) {
    (void)after;
    return set(step, state_value(items, step->target), state_value(before, key_of_rto(step)));
}

static enum outcome get(const struct step *step, struct text *value) {
    struct state state = {0};
    if (save(step, &state) != DONE)
        return FAILED;
    text_word(value, state_value(&state, step->target));
    return DONE;
}

const struct kind kind_host_route = {.save = save, .put = put, .restore = restore, .get = get};
