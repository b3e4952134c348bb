/* Frequencies above the nominal one: 1 allowed, 0 not. TARGET: the file that forbids, the file that allows.
 */
#include "guard/kind/files.h"

#include "guard/tool.h"

static enum outcome save(const struct step *step, struct state *state) {
    const struct names paths = words_of(step->target);
    for (size_t i = 0; i < paths.count; i++)
        if (files_save(paths.at[i], state) == DONE)
            return DONE;
    return complain("the CPU has no turbo that can be set");
}

/* Whether 1 in the file forbids it. */
static bool forbids(const struct state *state) { return ends_with(state->at[0].key, "no_turbo"); }

static enum outcome put(const struct step *step) {
    struct state state = {0};
    if (save(step, &state) != DONE)
        return FAILED;
    if (!is_same(step->value, "0") && !is_same(step->value, "1"))
        return complain("turbo is 0 or 1, not '%s'", step->value);
    const bool allowed = is_same(step->value, "1");
    return set_value(state.at[0].key, allowed != forbids(&state) ? "1" : "0");
}

static enum outcome get(const struct step *step, struct text *value) {
    struct state state = {0};
    if (save(step, &state) != DONE)
        return FAILED;
    text_word(value, is_same(state.at[0].value, "1") != forbids(&state) ? "1" : "0");
    return DONE;
}

static bool is_absent(const struct step *step) { return files_absent(step->target); }

const struct kind kind_turbo = {
    .save = save, .put = put, .restore = files_restore, .get = get, .is_absent = is_absent};
