/* Between a program and the C library (LD_PRELOAD): it is told to end when it has just made the file of a
 * launch, before it does anything else. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/types.h>

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
    const int fd = next(path, flags, mode);
    if (fd >= 0 && is_of_launch(path, flags))
        raise(SIGTERM);
    return fd;
}
