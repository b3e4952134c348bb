#include "core/abandoned.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/node.h"

enum { BEGIN_BYTES = 128 };
static const time_t AFTER_S = 3600;

void abandoned_name(char *name, size_t room, const char *kind) {
    char host[NODE_HOST_BYTES] = "";
    gethostname(host, sizeof host - 1);
    snprintf(name, room, "%s-%u-%.60s-%ld", kind, (unsigned)getuid(), host, (long)getpid());
}

void abandoned_remove(const char *directory, const char *kind) {
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
