#include "core/launch_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/node.h"

enum { BEGIN_BYTES = 128, PATH_BYTES = 1024, OTHERS_MOST = 1024 };
static const time_t AFTER_S = 3600;

static char own_path[PATH_BYTES];
static volatile sig_atomic_t has_one;
static char other_paths[OTHERS_MOST][PATH_BYTES];
static volatile sig_atomic_t others;

void launch_file_name(char *name, size_t room, const char *kind) {
    char host[NODE_HOST_BYTES] = "";
    gethostname(host, sizeof host - 1);
    snprintf(name, room, "%s-%u-%.60s-%ld", kind, (unsigned)getuid(), host, (long)getpid());
}

void launch_files_tidy(const char *directory, const char *kind) {
    char begin[BEGIN_BYTES];
    DIR *all = opendir(directory);
    snprintf(begin, sizeof begin, "%s-%u-", kind, (unsigned)getuid());
    for (const struct dirent *one = all == NULL ? NULL : readdir(all); one != NULL; one = readdir(all)) {
        struct stat found;
        if (strncmp(one->d_name, begin, strlen(begin)) == 0 &&
            fstatat(dirfd(all), one->d_name, &found, AT_SYMLINK_NOFOLLOW) == 0 &&
            time(NULL) - found.st_mtime > AFTER_S)
            unlinkat(dirfd(all), one->d_name, 0);
    }
    if (all != NULL)
        closedir(all);
}

void launch_file_begin(const char *path) {
    launch_file_forget(); /* a signal must not see half a name */
    has_one = snprintf(own_path, sizeof own_path, "%s", path) < (int)sizeof own_path;
}

void launch_file_also(const char *path) {
    if (others == OTHERS_MOST) /* those that are left out remove their own where they hear of the end */
        return;
    snprintf(other_paths[others], PATH_BYTES, "%s", path);
    others = others + 1;
}

void launch_file_forget(void) {
    has_one = 0;
    others = 0;
}

int launch_file_end(void) {
    if (!has_one)
        return 0;
    const int code = unlink(own_path); /* a handler that comes before it is gone removes it, too */
    launch_file_forget();
    return code == 0 || errno == ENOENT ? 0 : -1;
}

void launch_file_remove(void) {
    if (!has_one)
        return;
    unlink(own_path);
    for (int place = 0; place < others; place++)
        unlink(other_paths[place]);
}
