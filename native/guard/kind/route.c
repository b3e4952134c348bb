/* A property of the routes to the cluster's own network (those that `ip` calls scope link). */
#include "guard/kind.h"
#include "guard/kind/routes.h"
#include "guard/read/ip.h"
#include "guard/tool.h"

#include <string.h>

enum { MOST_WORDS = 64 };

static enum outcome ask(const struct step *step, struct text *said) {
    return routes_asked(said, (const char *const[]){"ip", "-4", "route", "show", "dev", step->interface,
                                                    "scope", "link", NULL});
}

static enum outcome none(const struct step *step) {
    return complain("%s has no route of its own", step->interface);
}

/* A route is known by where it goes, and by its metric. */
static const char *key_of(const struct route_line *route) {
    const char *destination = keep(route->destination.at, route->destination.size);
    return route->metric.size ? print("%s metric %s", destination, keep(route->metric.at, route->metric.size))
                              : destination;
}

static enum outcome save(const struct step *step, struct state *state) {
    struct text said = {0};
    if (ask(step, &said) != DONE)
        return FAILED;
    struct bytes rest = {text_string(&said), said.size}, line;
    while (next_line(&rest, &line)) {
        struct route_line route;
        if (read_route(line, step->target, &route) != DONE || route.is_other)
            continue;
        const struct bytes value = route.property;
        if (state_value(state, key_of(&route))) /* `ip` would change the first one whichever is meant */
            return complain("%s has several routes to %s", step->interface, key_of(&route));
        state_add(state, key_of(&route), value.size ? keep(value.at, value.size) : "default");
    }
    if (!state->count) /* an answer, too: it may be that they are gone */
        none(step);
    return DONE;
}

struct words {
    const char *at[MOST_WORDS + 8];
    size_t count;
};

static void add_word(void *of, struct bytes word) {
    struct words *words = of;
    if (words->count < MOST_WORDS)
        words->at[words->count++] = keep(word.at, word.size);
}

static enum outcome change(const struct step *step, struct bytes line, const char *value) {
    struct words words = {.at = {"ip", "-4", "route", "change"}, .count = 4};
    each_route_word(line, step->target, add_word, &words);
    if (words.count >= MOST_WORDS)
        return complain("a route of %s has too many words", step->interface);
    if (!is_same(value, "default")) {
        words.at[words.count++] = step->target;
        words.at[words.count++] =
            ends_with(value, "ms") || ends_with(value, "s") ? value : print("%sms", value);
    }
    static const char *const last[] = {"dev", NULL, "scope", "link"};
    for (size_t i = 0; i < COUNT(last); i++)
        words.at[words.count++] = last[i] ? last[i] : step->interface;
    words.at[words.count] = NULL;
    return tool_run(NULL, words.at);
}

/* Give a value to each route: that of the items, or the same to all. */
static enum outcome set(const struct step *step, const struct state *items, const char *same) {
    struct text said = {0};
    struct state now = {0};
    if (save(step, &now) != DONE || ask(step, &said) != DONE)
        return FAILED;
    if (!items && !said.size)
        return none(step);
    enum outcome outcome = DONE;
    struct bytes rest = {text_string(&said), said.size}, line;
    while (next_line(&rest, &line)) {
        struct route_line route;
        if (read_route(line, step->target, &route) != DONE || route.is_other)
            continue;
        const char *value = items ? state_value(items, key_of(&route)) : same;
        if (value && change(step, line, value) != DONE)
            outcome = FAILED;
    }
    return outcome;
}

static enum outcome put(const struct step *step) { return set(step, NULL, step->value); }

static enum outcome restore(const struct step *step, const struct state *items, const struct state *before,
                            const struct state *after) {
    (void)before;
    (void)after;
    return set(step, items, NULL);
}

/* A route that is gone took its property along. */
static bool is_gone(const struct step *step, const char *key) {
    (void)step;
    (void)key;
    return true;
}

static enum outcome get(const struct step *step, struct text *value) {
    struct state state = {0};
    if (save(step, &state) != DONE || !state.count)
        return FAILED;
    for (size_t i = 0; i < state.count; i++)
        if (!is_same(state.at[i].value, "default")) {
            text_word(value, state.at[i].value);
            return DONE;
        }
    text_word(value, "default");
    return DONE;
}

const struct kind kind_route = {.save = save, .put = put, .restore = restore, .get = get, .is_gone = is_gone};
