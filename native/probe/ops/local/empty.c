/* The probe's own cost: nothing happens between two readings of the clock. */
#include "core/clock.h"
#include "core/watchdog.h"
#include "probe/operation.h"

static int initiate(struct visit *visit, struct failure *failure) {
    (void)failure;
    const uint64_t begin = clock_now_ns();
    uint64_t before = begin;
    for (uint64_t i = 0; i < visit->iterations; i++) {
        watchdog_beat();
        const uint64_t now = clock_now_ns();
        visit->times_ns[i] = now - before;
        before = now;
    }
    visit->timed = visit->iterations;
    visit->total_ns = before - begin;
    return 0;
}

static const struct operation OPERATION = {
    .name = "empty",
    .link = LINK_NONE,
    .quantity = "probe overhead",
    .divisor = 1,
    .timing = TIMING_ITERATION,
    .summary = "Nothing: what the probe itself adds to every iteration",
    .initiate = initiate,
};
WULF_OPERATION(OPERATION)
