/* A property of a link that `ip link` sets. */
#include "guard/file.h"
#include "guard/kind.h"
#include "guard/tool.h"

#include <string.h>

static enum outcome path_of(const struct step *step, const char **path) {
    const struct bytes target = {step->target, strlen(step->target)};
    *path = print("/sys/class/net/%s/%s", step->interface, step->target);
    return bytes_only(target, "_") ? DONE : complain("a link has no property %s", step->target);
}

static enum outcome save(const struct step *step, struct state *state) {
    const char *path;
    char *value;
    if (path_of(step, &path) != DONE || read_value(path, &value) != DONE)
        return FAILED;
    state_add(state, step->target, value);
    return DONE;
}

static enum outcome set(const struct step *step, const char *value) {
    return RUN("ip", "link", "set", "dev", step->interface, step->target, value);
}

static enum outcome put(const struct step *step) { return set(step, step->value); }

const struct kind kind_link = {.save = save, .put = put, .set = set};
