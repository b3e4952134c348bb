/* A file under /proc or /sys, or all files of some patterns; a value has a word for each pattern. */
#include "guard/kind/files.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static enum outcome save(const struct step *step, struct state *state) {
    return files_save(step->target, state);
}
static enum outcome put(const struct step *step) { return files_put(step->target, step->value); }
static enum outcome get(const struct step *step, struct text *value) {
    return files_get(step->target, value);
}

static bool is_there_as_directory(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static bool is_absent(const char *path) {
    struct stat about;
    return stat(path, &about) != 0 && errno == ENOENT;
}

/* An interface that has fewer queues than when they were set has none of their settings, and would make a new
 * queue without them: nothing is to be put back. An interface that is gone is something else. */
static bool is_gone(const struct step *step, const char *path) {
    (void)step;
    const char *queues = strstr(path, "/queues/");
    if (!starts_with(path, "/sys/class/net/") || !queues)
        return false;
    const char *directory = keep(path, (size_t)(queues - path) + strlen("/queues"));
    const char *queue = keep(path, (size_t)(strrchr(path, '/') - path));
    return is_there_as_directory(directory) && is_absent(queue);
}

static bool are_absent(const struct step *step) { return files_absent(step->target); }

const struct kind kind_file = {.save = save,
                               .put = put,
                               .restore = files_restore,
                               .get = get,
                               .is_absent = are_absent,
                               .is_gone = is_gone};
