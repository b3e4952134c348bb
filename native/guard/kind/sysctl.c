/* A parameter of the kernel, by its name in sysctl. */
#include "guard/kind/files.h"

#include <string.h>

/* The target is no pattern: each dot is a directory. */
static const char *path_of(const struct step *step) {
    char *path = print("/proc/sys/%s", step->target);
    for (char *at = path; *at; at++)
        if (*at == '.')
            *at = '/';
    return path;
}

static enum outcome checked(const struct step *step) {
    const struct bytes target = {step->target, strlen(step->target)};
    return bytes_only(target, "_.-") && !strstr(step->target, "..") && *step->target != '.'
               ? DONE
               : complain("there is no parameter %s of the kernel", step->target);
}

static enum outcome save(const struct step *step, struct state *state) {
    return checked(step) == DONE ? files_save(path_of(step), state) : FAILED;
}

static enum outcome put(const struct step *step) {
    return checked(step) == DONE ? files_put(path_of(step), step->value) : FAILED;
}

static enum outcome get(const struct step *step, struct text *value) {
    return checked(step) == DONE ? files_get(path_of(step), value) : FAILED;
}

static bool is_absent(const struct step *step) { return files_absent(path_of(step)); }

const struct kind kind_sysctl = {
    .save = save, .put = put, .restore = files_restore, .get = get, .is_absent = is_absent};
