/* SplitMix64: a counter put through a mixing function (Steele, Lea, Flood: Fast splittable pseudorandom
 * number generators, OOPSLA 2014). Equal on every machine. */
#ifndef WULF_RNG_H
#define WULF_RNG_H

#include <stdint.h>

#define RNG_STEP UINT64_C(0x9e3779b97f4a7c15)

static inline uint64_t rng_mix(uint64_t z) {
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static inline uint64_t rng_next(uint64_t *state) {
    *state += RNG_STEP;
    return rng_mix(*state);
}

/* Uniform in [0, bound), without bias; `bound` > 0. */
static inline uint64_t rng_below(uint64_t *state, uint64_t bound) {
    const uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
    uint64_t drawn = rng_next(state);
    while (drawn >= limit)
        drawn = rng_next(state);
    return drawn % bound;
}

#endif
