/* What systemd starts at boot: enabled or disabled. */
#include "guard/kind.h"
#include "guard/tool.h"

#include <string.h>

static enum outcome save(const struct step *step, struct state *state) {
    struct text said = {0};
    int code;
    const char *const words[] = {"systemctl", "is-enabled", step->target, NULL};
    if (tool_code(&said, &code, words) != DONE)
        return FAILED;
    struct bytes rest = {text_string(&said), said.size}, line;
    if (!next_line(&rest, &line) || !bytes_only(line, "-") || bytes_are(line, "not-found"))
        return complain("there is no %s", step->target);
    state_add(state, step->target, keep(line.at, line.size));
    return DONE;
}

static enum outcome set(const struct step *step, const char *value) {
    if (!is_same(value, "enabled") && !is_same(value, "disabled"))
        return complain("a unit is enabled or disabled at boot, not '%s'", value);
    struct state now = {0};
    /* Also where nothing changes, systemctl would write the links of System V anew. */
    if (save(step, &now) == DONE && is_same(now.at[0].value, value))
        return DONE;
    forgive();
    return RUN("systemctl", "--quiet", is_same(value, "enabled") ? "enable" : "disable", step->target);
}

static enum outcome put(const struct step *step) { return set(step, step->value); }

/* What starts at this boot was settled before the unit is put back; the system may still be booting, so
 * nobody waits. */
static enum outcome restore_at_boot(const struct step *step, const struct state *items) {
    const char *value = state_value(items, step->target);
    if (!value || set(step, value) != DONE)
        return FAILED;
    const char *verb = is_same(value, "enabled") ? "start" : is_same(value, "disabled") ? "stop" : NULL;
    return verb ? RUN("systemctl", "--no-block", verb, step->target) : DONE;
}

const struct kind kind_unit = {.save = save, .put = put, .set = set, .restore_at_boot = restore_at_boot};
