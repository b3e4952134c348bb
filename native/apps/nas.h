/* What kernels by the specification of the NAS Parallel Benchmarks have in common (Bailey and others: The NAS
 * Parallel Benchmarks, RNR-94-007, 1994): pseudo-random numbers, classes of sizes, and the word whether the
 * result is right. These are implementations of our own; their times are no results of those benchmarks. */
#ifndef WULF_APPS_NAS_H
#define WULF_APPS_NAS_H

#include <stdbool.h>
#include <stdint.h>

#include "apps/account.h"

/* Section 2.3: x' = a x modulo 2^46. Numbers of 64 bits wrap at a multiple of that. */
#define NAS_FACTOR UINT64_C(1220703125) /* 5^13 */
#define NAS_MASK ((UINT64_C(1) << 46) - 1)

/* The next number, between 0 and 1. */
static inline double nas_next(uint64_t *state) {
    *state = *state * NAS_FACTOR & NAS_MASK;
    return (double)*state / (double)(NAS_MASK + 1);
}

/* The state after so many numbers. */
static inline uint64_t nas_after(uint64_t state, uint64_t numbers) {
    for (uint64_t factor = NAS_FACTOR; numbers > 0; numbers >>= 1) {
        if (numbers & 1)
            state = state * factor & NAS_MASK;
        factor = factor * factor & NAS_MASK;
    }
    return state;
}

/* A class by its letter; `count` of them, S, W, A … -1 where there is none. */
static inline int nas_class(const char *name, int count) {
    static const char LETTERS[] = "SWA";
    for (int i = 0; i < count && LETTERS[i] != '\0'; i++)
        if (name[0] == LETTERS[i] && name[1] == '\0')
            return i;
    return -1;
}

/* Where the part of a rank begins, of so many in all. */
static inline uint64_t nas_begin(uint64_t all, int rank, int ranks) {
    return all / (uint64_t)ranks * (uint64_t)rank +
           ((uint64_t)rank < all % (uint64_t)ranks ? (uint64_t)rank : all % (uint64_t)ranks);
}

/* A kernel of one of the classes; whether its result is right is known on all ranks. An error code of MPI. */
typedef int (*nas_kernel)(int number, struct account *account, bool *right);

/* Everything around it: command line, MPI, what it prints. The exit code. */
int nas_main(int argc, char **argv, const char *name, const char *what, nas_kernel kernel);

#endif
