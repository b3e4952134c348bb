#include "core/rng.h"
#include "probe/order.h"
#include "tests/expect.h"

enum { COUNT = 100 };

static void is_a_permutation(void) {
    size_t order[COUNT];
    int seen[COUNT] = {0};
    order_shuffle(order, COUNT, 7, 3);
    for (size_t i = 0; i < COUNT; i++)
        seen[order[i] % COUNT]++;
    for (size_t i = 0; i < COUNT; i++)
        EXPECT(order[i] < COUNT && seen[i] == 1);
}

static void depends_on_seed_and_sweep_alone(void) {
    size_t first[COUNT], again[COUNT], sweep[COUNT], seed[COUNT];
    order_shuffle(first, COUNT, 7, 3);
    order_shuffle(again, COUNT, 7, 3);
    order_shuffle(sweep, COUNT, 7, 4);
    order_shuffle(seed, COUNT, 8, 3);
    EXPECT(memcmp(first, again, sizeof first) == 0);
    EXPECT(memcmp(first, sweep, sizeof first) != 0);
    EXPECT(memcmp(first, seed, sizeof first) != 0);
}

/* Each of the 6 orders of 3 cells about as often: chi-squared with 5 degrees of freedom, 0.1 % point 20.5. */
static void is_uniform(void) {
    enum { ROUNDS = 6000 };
    double counts[27] = {0};
    double chi_squared = 0;
    for (uint64_t sweep = 0; sweep < ROUNDS; sweep++) {
        size_t order[3];
        order_shuffle(order, 3, 1, sweep);
        counts[order[0] * 9 + order[1] * 3 + order[2]]++;
    }
    for (size_t i = 0; i < 27; i++)
        if (counts[i] > 0)
            chi_squared += (counts[i] - ROUNDS / 6.0) * (counts[i] - ROUNDS / 6.0) / (ROUNDS / 6.0);
    EXPECT(chi_squared < 20.5);
}

/* Reference values of SplitMix64 from state 0 (as in the Java and xoshiro reference implementations). */
static void generator_is_splitmix64(void) {
    uint64_t state = 0;
    EXPECT(rng_next(&state) == UINT64_C(0xe220a8397b1dcdaf));
    EXPECT(rng_next(&state) == UINT64_C(0x6e789e6aa1b965f4));
    EXPECT(rng_next(&state) == UINT64_C(0x06c45d188009454f));
}

int main(void) {
    is_a_permutation();
    depends_on_seed_and_sweep_alone();
    is_uniform();
    generator_is_splitmix64();
    return EXPECT_STATUS();
}
