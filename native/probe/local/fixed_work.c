#include "probe/local/fixed_work.h"

#include "core/clock.h"
#include "core/watchdog.h"

enum { TRIES = 8 };
static const uint64_t NS_PER_US = 1000;

/* Steps that each wait for the one before: no compiler and no processor can shorten them. */
static uint64_t work(uint64_t steps, uint64_t value) {
    for (uint64_t i = 0; i < steps; i++)
        value = value * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return value;
}

static volatile uint64_t sink;

/* Steps that last so long where nothing disturbs them: the shortest of several tries counts. They are the
 * same in all visits of a launch. */
static uint64_t steps_of(uint64_t length_ns) {
    static uint64_t known_ns, known_steps;
    if (known_ns == length_ns)
        return known_steps;
    const uint64_t probe = 20000;
    uint64_t shortest_ns = UINT64_MAX;
    for (int i = 0; i < TRIES; i++) {
        const uint64_t begin = clock_now_ns();
        sink = work(probe, begin);
        const uint64_t took_ns = clock_now_ns() - begin;
        shortest_ns = took_ns < shortest_ns ? took_ns : shortest_ns;
    }
    known_ns = length_ns;
    known_steps = probe * length_ns / (shortest_ns == 0 ? 1 : shortest_ns) + 1;
    return known_steps;
}

void fixed_work_visit(struct visit *visit, uint64_t work_us) {
    const uint64_t steps = steps_of(work_us * NS_PER_US);
    uint64_t value = work(steps, visit->seed); /* not timed: finds a processor that slept */
    const uint64_t begin = clock_now_ns();
    uint64_t before = begin;
    for (uint64_t i = 0; i < visit->iterations; i++) {
        value = work(steps, value);
        watchdog_beat();
        const uint64_t now = clock_now_ns();
        visit->times_ns[i] = now - before;
        before = now;
    }
    sink = value;
    visit->timed = visit->iterations;
    visit->total_ns = before - begin;
}
