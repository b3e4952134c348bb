/* A library that spoils what is sent without waiting: the first byte of every part of 512 bytes or more. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <sys/socket.h>

ssize_t send(int fd, const void *bytes, size_t length, int flags) {
    ssize_t (*const real)(int, const void *, size_t, int) =
        (ssize_t(*)(int, const void *, size_t, int))dlsym(RTLD_NEXT, "send");
    static unsigned char spoiled[1 << 20];
    if ((flags & MSG_DONTWAIT) == 0 || length < 512 || length > sizeof spoiled)
        return real(fd, bytes, length, flags);
    memcpy(spoiled, bytes, length);
    spoiled[0] ^= 0x40;
    return real(fd, spoiled, length, flags);
}
