#include "probe/alternation.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/watchdog.h"

enum { PATH_BYTES = 512, WORD_BYTES = 256, LOOK_MS = 20 };
/* A guard that is at work takes milliseconds; one whose tool waits for a driver longer. */
static const uint64_t PATIENCE_NS = 20000000000;

static int fail(struct failure *failure, const char *place, const char *what) {
    return failure_set(failure, "setting", "", "the guard at %.200s %s", place, what);
}

static int open_end(const char *place, const char *end, int flags, struct failure *failure) {
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s.%s", place, end);
    const int fd = open(path, flags | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        failure_set(failure, "setting", "", "%.200s: %s", path,
                    errno == ENXIO ? "no guard listens any more" : strerror(errno));
    return fd;
}

/* What the guard says, to its end; `fd` does not block. */
static int read_word(int fd, char word[WORD_BYTES], const char *place, struct failure *failure) {
    const uint64_t begin = clock_now_ns();
    size_t length = 0;
    while (clock_now_ns() - begin < PATIENCE_NS) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        watchdog_beat(); /* it is the guard that is slow, not the peer */
        if (poll(&ready, 1, LOOK_MS) <= 0)
            continue;
        const ssize_t got = read(fd, word + length, WORD_BYTES - 1 - length);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (got < 0)
            return fail(failure, place, strerror(errno));
        length += (size_t)got;
        word[length] = '\0';
        if (memchr(word, '\n', length) != NULL) {
            word[strcspn(word, "\n")] = '\0';
            return 0;
        }
        if (got == 0 || length == WORD_BYTES - 1)
            return fail(failure, place, "said nothing that is understood");
    }
    return fail(failure, place, "did not answer in time");
}

static int ask(const char *place, int answer, char arm, struct failure *failure) {
    const char line[2] = {arm, '\n'};
    char word[WORD_BYTES];
    const int request = open_end(place, "ask", O_WRONLY, failure);
    if (request < 0)
        return -1;
    const bool written = write(request, line, sizeof line) == (ssize_t)sizeof line;
    close(request);
    if (!written)
        return fail(failure, place, "cannot be asked");
    if (read_word(answer, word, place, failure) != 0)
        return -1;
    return strcmp(word, "ok") == 0 ? 0 : fail(failure, place, word);
}

int alternation_ask(const char *place, char arm, struct failure *failure) {
    /* Open before it is asked, so that the guard finds somebody who reads. */
    const int answer = open_end(place, "answer", O_RDONLY, failure);
    if (answer < 0)
        return -1;
    const int status = ask(place, answer, arm, failure);
    close(answer);
    return status;
}
