/* How late a processor is back from a sleep of so many µs: of its timer, its power states, and of who else is
 * there. A message that comes in while a processor sleeps waits as long. */
#include <errno.h>
#include <time.h>

#include "core/clock.h"
#include "core/watchdog.h"
#include "probe/operation.h"

enum { GAP_US = 1000, GAP_MOST_US = 1000000, VISIT_SCALE = 10 };
static const uint64_t NS_PER_US = 1000, NS_PER_S = 1000000000;

static uint64_t monotonic_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static int initiate(struct visit *visit, struct failure *failure) {
    (void)failure;
    const uint64_t begin = clock_now_ns();
    for (uint64_t i = 0; i < visit->iterations; i++) {
        const uint64_t due_ns = monotonic_ns() + visit->parameter * NS_PER_US;
        const struct timespec due = {.tv_sec = (time_t)(due_ns / NS_PER_S),
                                     .tv_nsec = (long)(due_ns % NS_PER_S)};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) == EINTR)
            continue;
        const uint64_t late_ns = monotonic_ns() - due_ns;
        watchdog_beat();
        visit->times_ns[i] = late_ns == 0 ? 1 : late_ns;
        visit->total_ns += visit->times_ns[i];
    }
    visit->timed = visit->iterations;
    visit->lasted_ns = clock_now_ns() - begin;
    return 0;
}

static const struct operation OPERATION = {
    .name = "wake",
    .link = LINK_NONE,
    .quantity = "time by which it wakes late",
    .divisor = 1,
    .timing = TIMING_ITERATION,
    .visit_scale = VISIT_SCALE,
    .parameter = {.name = "µs of sleep", .usual = GAP_US, .low = 1, .high = GAP_MOST_US},
    .summary = "Sleeps of a given length: how late the processor is back, from its power states above all",
    .initiate = initiate,
};
WULF_OPERATION(OPERATION)
