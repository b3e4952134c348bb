/* The profile of TuneD that is in force; `none` when it does nothing. TARGET: the file in which TuneD keeps
 * its name. */
#include "guard/kind.h"
#include "guard/kind/keeping.h"
#include "guard/tool.h"

#include <string.h>

#define PRESET "preset:"

static enum outcome active(struct text *profile) {
    struct text said = {0};
    int code;
    static const char *const words[] = {"tuned-adm", "active", NULL};
    if (!tool_path("tuned-adm"))
        return complain("TuneD is not installed");
    if (tool_code(&said, &code, words) != DONE)
        return FAILED;
    static const char start[] = "Current active profile: ";
    struct bytes rest = {text_string(&said), said.size}, line;
    while (next_line(&rest, &line))
        if (bytes_begin(line, start) && line.size > strlen(start)) {
            text_add(profile, line.at + strlen(start), line.size - strlen(start));
            return DONE;
        }
    /* Anything else is an error of its own: what is in force then, nobody knows. */
    static const char *const none[] = {"No current active profile", "daemon is not running"};
    for (size_t i = 0; i < COUNT(none); i++)
        if (bytes_find((struct bytes){text_string(&said), said.size}, none[i]) < said.size) {
            text_word(profile, "none");
            return DONE;
        }
    return complain("tuned-adm does not say which profile is in force%s%s", said.size ? ": " : "",
                    one_line(text_string(&said), 200));
}

/* `preset:NAME` where TuneD does not run but has a profile for when it does. */
static enum outcome save(const struct step *step, struct state *state) {
    struct text profile = {0};
    if (active(&profile) != DONE)
        return FAILED;
    char *kept;
    if (is_same(profile.at, "none") && read_value(step->target, &kept) == DONE && *kept)
        state_add(state, "profile", print(PRESET "%s", kept));
    else
        state_add(state, "profile", profile.at);
    forgive();
    return DONE;
}

static enum outcome set(const char *value) {
    return is_same(value, "none") ? RUN("tuned-adm", "off") : RUN("tuned-adm", "profile", value);
}

static enum outcome put(const struct step *step) { return set(step->value); }

/* What it sets when it starts. */
static enum outcome preset(const struct step *step, const char *profile) {
    return write_kept(step->target, *profile ? print("%s\n", profile) : "", 0644);
}

static enum outcome restore(const struct step *step, const struct state *items, const struct state *before,
                            const struct state *after) {
    (void)before;
    (void)after;
    const char *value = state_value(items, "profile");
    if (!value)
        return DONE;
    if (!starts_with(value, PRESET))
        return set(value);
    struct text now = {0};
    if (active(&now) != DONE ||
        (!is_same(now.at, "none") && RUN("systemctl", "stop", "tuned.service") != DONE))
        return FAILED;
    return preset(step, value + strlen(PRESET));
}

static const char *without_preset(const char *value) {
    return starts_with(value, PRESET) ? value + strlen(PRESET) : value;
}

/* After a boot TuneD may still come: what counts is what it finds. */
static bool is_back_at_boot(const char *wanted, const char *now) {
    return is_same(without_preset(wanted), without_preset(now));
}

static enum outcome restore_at_boot(const struct step *step, const struct state *items) {
    const char *value = state_value(items, "profile");
    struct text now = {0};
    if (!value || active(&now) != DONE)
        return FAILED;
    if (!is_same(now.at, "none"))
        return set(without_preset(value));
    return preset(step, is_same(value, "none") ? "" : without_preset(value));
}

static enum outcome get(const struct step *step, struct text *value) {
    (void)step;
    return active(value);
}

const struct kind kind_tuned = {.save = save,
                                .put = put,
                                .restore = restore,
                                .get = get,
                                .restore_at_boot = restore_at_boot,
                                .is_back_at_boot = is_back_at_boot};
