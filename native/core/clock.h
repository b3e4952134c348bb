/* The clock that every figure comes from, and what a reading of it costs. */
#ifndef WULF_CLOCK_H
#define WULF_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Not slewed by NTP, so that a time correction in mid launch is no latency. */
#define WULF_CLOCK_ID CLOCK_MONOTONIC_RAW
#define WULF_CLOCK_NAME "CLOCK_MONOTONIC_RAW"

struct clock_info {
    double resolution_ns;
    double cost_ns; /* of one reading */
};

/* Now [ns], from an arbitrary origin. */
static inline uint64_t clock_now_ns(void) {
    struct timespec now;
    clock_gettime(WULF_CLOCK_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

/* Measure the clock: takes about a millisecond. */
struct clock_info clock_measure(void);

#endif
