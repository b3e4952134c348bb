/* The tracer's clock: the processor's counter where the kernel itself keeps time by it, else the clock that
 * all figures come from. A reading of the first takes a third of one of the second. */
#ifndef WULF_TRACER_TICKS_H
#define WULF_TRACER_TICKS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/clock.h"

__extension__ typedef unsigned __int128 ticks_wide;

/* Set by ticks_begin and ticks_calibrate, read by everybody. */
extern struct ticks {
    bool has_counter;
    uint64_t scale; /* [ns / 2^32] of one tick */
} ticks;

/* When the library is loaded; then, when times are wanted from now on. */
void ticks_begin(void);
void ticks_calibrate(void);

/* Not ordered against what stands around it: within some tens of cycles. */
static inline uint64_t ticks_now(void) {
#if defined(__x86_64__)
    if (__builtin_expect(ticks.has_counter, 1))
        return __builtin_ia32_rdtsc();
#endif
    return clock_now_ns();
}

static inline uint64_t ticks_to_ns(uint64_t count) {
    return (uint64_t)((ticks_wide)count * ticks.scale >> 32);
}

#endif
