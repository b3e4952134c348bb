#include "core/watchdog.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/failure.h"
#include "core/launch_file.h"
#include "core/lines.h"

_Atomic uint32_t watchdog_beats;

enum { LOOK_EVERY_NS = 250000000 }; /* costs a few microseconds each time */

/* What a signal handler writes, made beforehand. */
struct last_words {
    char text[1024];
    size_t length;
    int fd;
};

static struct last_words on_timeout, on_terminate;
static uint64_t timeout_ns;
static uint64_t last_change_ns;
static uint32_t last_beats;

_Noreturn static void say_and_end(const struct last_words *words) {
    /* First, as whoever ends this process may kill it when it has not ended at once. */
    launch_file_remove();
    /* A line that was being written is ended. */
    const ssize_t ended = write(words->fd, "\n", 1);
    const ssize_t said = write(words->fd, words->text, words->length);
    (void)ended; /* nothing can be done about a failure here */
    (void)said;
    /* This may be another thread than that which was about to make it. */
    launch_file_remove();
    _exit(FAILURE_EXIT);
}

static void look(int signal_number) {
    (void)signal_number;
    const int saved = errno;
    const uint64_t now = clock_now_ns();
    const uint32_t beats = atomic_load_explicit(&watchdog_beats, memory_order_relaxed);
    if (beats != last_beats) {
        last_beats = beats;
        last_change_ns = now;
    } else if (now - last_change_ns >= timeout_ns)
        say_and_end(&on_timeout);
    errno = saved;
}

static void terminate(int signal_number) {
    (void)signal_number;
    say_and_end(&on_terminate);
}

static void leave(int signal_number) {
    launch_file_remove();
    signal(signal_number, SIG_DFL);
    raise(signal_number); /* when this has returned */
}

static int prepare(struct last_words *words, int fd, const char *peer, const char *message) {
    struct failure failure = {0};
    failure_set(&failure, "peer_lost", peer, "%s", message);
    words->fd = fd;
    words->length = line_failure_text(&failure, words->text, sizeof words->text);
    return words->length == 0 ? -1 : 0;
}

static int handle(int signal_number, void (*handler)(int)) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    return sigaction(signal_number, &action, NULL);
}

int watchdog_start(int fd, const char *peer, unsigned timeout_s) {
    static timer_t timer;
    static int running;
    char message[400];
    snprintf(message, sizeof message, "%s has not answered for %u s", peer, timeout_s);
    const int signal_number = SIGRTMIN + 7;
    sigset_t ours, before;
    sigemptyset(&ours);
    sigaddset(&ours, signal_number);
    sigprocmask(SIG_BLOCK, &ours, &before); /* the handler must not see half of what follows */
    timeout_ns = (uint64_t)timeout_s * 1000000000U;
    last_change_ns = clock_now_ns();
    int failed = prepare(&on_timeout, fd, peer, message);
    if (failed == 0 && !running) {
        struct sigevent event;
        memset(&event, 0, sizeof event);
        event.sigev_notify = SIGEV_SIGNAL;
        event.sigev_signo = signal_number;
        const struct itimerspec every = {.it_interval = {.tv_nsec = LOOK_EVERY_NS},
                                         .it_value = {.tv_nsec = LOOK_EVERY_NS}};
        failed = handle(signal_number, look) != 0 || timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 ||
                 timer_settime(timer, 0, &every, NULL) != 0;
        running = !failed;
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return failed ? -1 : 0;
}

int watchdog_on_terminate(int fd, const char *peer, const char *message) {
    if (prepare(&on_terminate, fd, peer, message) != 0 || handle(SIGTERM, terminate) != 0)
        return -1;
    return handle(SIGUSR1, terminate); /* what Hydra sends to the ranks that are left */
}

int watchdog_leave_on_terminate(void) { return handle(SIGTERM, leave); }
