/* The route to one address, TARGET: `via GATEWAY dev INTERFACE src ADDRESS`, or `none`. With `src` packets
 * keep the address by which the others know the node: answers would not find the way back to one of a cable.
 */
#include "guard/kind.h"
#include "guard/kind/files.h"
#include "guard/kind/routes.h"
#include "guard/read/ip.h"
#include "guard/tool.h"

#include <string.h>

static enum outcome checked(const struct step *step) {
    const struct bytes target = {step->target, strlen(step->target)};
    return bytes_only(target, ".") ? DONE : complain("%s is no address", step->target);
}

static void add_word(void *of, struct bytes word) {
    struct text *text = of;
    text_print(text, "%s%s", text->size ? " " : "", keep(word.at, word.size));
}

/* As `ip` takes it; a route with a metric is somebody else's, and comes after this one. */
static enum outcome save(const struct step *step, struct state *state) {
    struct text said = {0};
    const char *const asked[] = {"ip",    "-4",   "route", "show", "exact", print("%s/32", step->target),
                                 "table", "main", NULL};
    if (checked(step) != DONE || routes_asked(&said, asked) != DONE)
        return FAILED;
    struct bytes rest = {text_string(&said), said.size}, line;
    while (next_line(&rest, &line)) {
        struct route_line route;
        if (read_route(line, NULL, &route) != DONE || route.metric.size)
            continue;
        if (route.is_other)
            return complain("the route to %s that is there cannot be put back as it was", step->target);
        struct text words = {0};
        next_word(&line, &route.destination);
        each_route_word(line, NULL, add_word, &words);
        state_add(state, step->target, text_string(&words));
        return DONE;
    }
    state_add(state, step->target, "none");
    return DONE;
}

static enum outcome set(const struct step *step, const char *value) {
    const char *route = print("%s/32", step->target);
    if (is_same(value, "none")) {
        struct state now = {0};
        if (save(step, &now) != DONE)
            return FAILED;
        return is_same(now.at[0].value, "none") ? DONE : RUN("ip", "-4", "route", "del", route);
    }
    const struct names names = words_of(value);
    const char *words[48] = {"ip", "-4", "route", "replace", route};
    if (names.count + 6 > COUNT(words))
        return complain("the route to %s has too many words", step->target);
    for (size_t i = 0; i < names.count; i++)
        words[5 + i] = names.at[i];
    return tool_run(NULL, words);
}

static enum outcome put(const struct step *step) {
    return checked(step) == DONE ? set(step, step->value) : FAILED;
}

const struct kind kind_host_route = {.save = save, .put = put, .set = set};
