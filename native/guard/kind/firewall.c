/* The packet filter, for one interface: accept early, and do not track connections. What is ours is recorded
 * rule by rule; nothing of anybody else is removed or changed, whatever its comment is. */
#include "guard/kind.h"
#include "guard/kind/rules.h"
#include "guard/tool.h"

static enum outcome save(const struct step *step, struct state *state) {
    const char *programs[2];
    struct owned owned;
    if (!tool_path("nft") && !legacy_programs(programs))
        return complain("nft is not installed");
    if (owned_read(&owned) != DONE)
        return FAILED;
    state_add(state, step->interface, owned_mode(&owned, step->interface));
    return DONE;
}

static enum outcome put(const struct step *step) { return exempt(step->interface, step->value); }

static enum outcome restore(const struct step *step, const struct state *items, const struct state *before,
                            const struct state *after) {
    (void)before;
    (void)after;
    const char *mode = state_value(items, step->interface);
    return mode ? exempt(step->interface, mode) : DONE;
}

static enum outcome get(const struct step *step, struct text *value) {
    struct state state = {0};
    if (save(step, &state) != DONE)
        return FAILED;
    text_word(value, state.at[0].value);
    return DONE;
}

const struct kind kind_firewall = {
    .save = save, .put = put, .restore = restore, .get = get, .nothing = "tracked"};
