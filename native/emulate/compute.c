#include "emulate/compute.h"

#include <string.h>

#include "core/clock.h"
#include "core/watchdog.h"

/* A step is one of a linear congruential generator (Knuth's MMIX): each needs the result of the last. */
#define FACTOR UINT64_C(6364136223846793005)
#define SUMMAND UINT64_C(1442695040888963407)

enum { TRY_STEPS = 1 << 14, CALIBRATE_NS = 4000000 };
/* Between two signs of life. */
static const uint64_t STRETCH_NS = 1000000;

static volatile uint64_t result;

static void work(uint64_t steps) {
    uint64_t state = result;
    for (uint64_t i = 0; i < steps; i++)
        state = state * FACTOR + SUMMAND;
    result = state;
}

int compute_named(struct compute *compute, const char *name) {
    static const char *const NAMES[] = {"work", "clock", "none"};
    for (int way = COMPUTE_WORK; way <= COMPUTE_NONE; way++)
        if (strcmp(name, NAMES[way]) == 0) {
            compute->way = (enum compute_way)way;
            return 0;
        }
    return -1;
}

void compute_calibrate(struct compute *compute) {
    if (compute->way != COMPUTE_WORK)
        return;
    uint64_t shortest_ns = UINT64_MAX;
    const uint64_t begin_ns = clock_now_ns();
    uint64_t now_ns = begin_ns;
    while (now_ns - begin_ns < CALIBRATE_NS) {
        const uint64_t before_ns = now_ns;
        work(TRY_STEPS);
        now_ns = clock_now_ns();
        if (now_ns - before_ns < shortest_ns)
            shortest_ns = now_ns - before_ns;
    }
    compute->step_ns = (double)(shortest_ns > 0 ? shortest_ns : 1) / TRY_STEPS;
}

/* The clock is read between two stretches only: reading it is no work. */
static void work_for(const struct compute *compute, uint64_t lasts_ns) {
    for (uint64_t rest_ns = lasts_ns; rest_ns > 0;) {
        const uint64_t stretch_ns = rest_ns < STRETCH_NS ? rest_ns : STRETCH_NS;
        work((uint64_t)((double)stretch_ns / compute->step_ns));
        rest_ns -= stretch_ns;
        watchdog_beat();
    }
}

static void wait_until(uint64_t end_ns) {
    while (clock_now_ns() < end_ns)
        watchdog_beat();
}

uint64_t compute_for(const struct compute *compute, uint64_t lasts_ns) {
    if (lasts_ns == 0 || compute->way == COMPUTE_NONE)
        return 0;
    const uint64_t begin_ns = clock_now_ns();
    if (compute->way == COMPUTE_CLOCK)
        wait_until(begin_ns + lasts_ns);
    else
        work_for(compute, lasts_ns);
    return clock_now_ns() - begin_ns;
}
