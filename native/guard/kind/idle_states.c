/* Idle states of the CPUs that are not used: "all allowed", or "disabled: NAME NAME". TARGET: patterns of
 * their files. */
#include "guard/kind/files.h"

#include "guard/tool.h"

#include <string.h>

static enum outcome save(const struct step *step, struct state *state) {
    return files_save(step->target, state);
}

/* Of .../NAME/disable. */
static const char *name_of(const char *path) {
    const char *end = strrchr(path, '/'), *begin = end;
    while (begin > path && begin[-1] != '/')
        begin--;
    return keep(begin, (size_t)(end - begin));
}

static enum outcome put(const struct step *step) {
    const bool some = starts_with(step->value, "disabled:");
    if (!some && !is_same(step->value, "all allowed"))
        return complain("idle states are 'all allowed' or 'disabled: NAME NAME', not '%s'", step->value);
    const char *names = some ? step->value + strlen("disabled:") : "";
    struct names files;
    if (all_files_of(step->target, &files) != DONE)
        return FAILED;
    for (size_t i = 0; i < files.count; i++)
        if (set_value(files.at[i],
                      is_word_of(name_of(files.at[i]), names + strspn(names, " ")) ? "1" : "0") != DONE)
            return FAILED;
    return DONE;
}

static enum outcome get(const struct step *step, struct text *value) {
    struct state state = {0};
    if (save(step, &state) != DONE)
        return FAILED;
    struct text names = {0};
    for (size_t i = 0; i < state.count; i++)
        if (is_same(state.at[i].value, "1") && !is_word_of(name_of(state.at[i].key), text_string(&names)))
            text_print(&names, "%s%s", names.size ? " " : "", name_of(state.at[i].key));
    text_print(value, "%s%s", names.size ? "disabled: " : "all allowed", text_string(&names));
    return DONE;
}

static bool is_absent(const struct step *step) { return files_absent(step->target); }

const struct kind kind_idle_states = {
    .save = save, .put = put, .restore = files_restore, .get = get, .is_absent = is_absent};
