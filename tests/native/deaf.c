/* Between a program and the C library (LD_PRELOAD): the first rank hears of no end any more when it has made
 * a file of the launch, as one that gets no CPU before it is killed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

static int is_first(void) {
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    if (rank == NULL)
        rank = getenv("PMI_RANK");
    return rank != NULL && strcmp(rank, "0") == 0;
}

static int is_of_launch(const char *path, int flags) {
    return (flags & O_EXCL) != 0 &&
           (strstr(path, "/wulf-probe-files-") != NULL || strstr(path, "/wulf-emulate-") != NULL);
}

int open(const char *path, int flags, ...) {
    int (*const next)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
    mode_t mode = 0;
    if ((flags & O_CREAT) != 0) {
        va_list rest;
        va_start(rest, flags);
        mode = va_arg(rest, mode_t);
        va_end(rest);
    }
    if (is_of_launch(path, flags) && is_first()) {
        signal(SIGTERM, SIG_IGN);
        signal(SIGUSR1, SIG_IGN);
    }
    return next(path, flags, mode);
}
