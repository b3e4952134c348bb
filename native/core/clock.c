#include "core/clock.h"

#include "core/sort.h"

enum { ROUNDS = 31, READINGS = 1000 };

/* A clock whose readings repeat has a step that can be seen; otherwise the kernel's own word counts. */
static double resolution_ns(void) {
    uint64_t step = UINT64_MAX;
    int repeated = 0;
    uint64_t before = clock_now_ns();
    for (int i = 0; i < READINGS; i++) {
        const uint64_t now = clock_now_ns();
        if (now == before)
            repeated = 1;
        else if (now - before < step)
            step = now - before;
        before = now;
    }
    struct timespec said;
    if ((!repeated || step == UINT64_MAX) && clock_getres(WULF_CLOCK_ID, &said) == 0)
        return (double)said.tv_sec * 1e9 + (double)said.tv_nsec;
    return (double)step;
}

static double cost_ns(void) {
    uint64_t rounds[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t begin = clock_now_ns();
        uint64_t end = begin;
        for (int i = 0; i < READINGS; i++)
            end = clock_now_ns();
        rounds[round] = end - begin;
    }
    return median_u64(rounds, ROUNDS) / READINGS;
}

struct clock_info clock_measure(void) {
    return (struct clock_info){.resolution_ns = resolution_ns(), .cost_ns = cost_ns()};
}
