#include "probe/order.h"

#include "core/rng.h"

void order_shuffle(size_t *order, size_t count, uint64_t seed, uint64_t sweep) {
    uint64_t state = rng_mix(seed) ^ rng_mix(sweep * RNG_STEP + 1);
    for (size_t i = 0; i < count; i++)
        order[i] = i;
    for (size_t i = count; i > 1; i--) { /* Fisher–Yates */
        const size_t other = (size_t)rng_below(&state, i);
        const size_t held = order[i - 1];
        order[i - 1] = order[other];
        order[other] = held;
    }
}
