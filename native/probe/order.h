/* The random order in which a sweep visits its cells. */
#ifndef WULF_ORDER_H
#define WULF_ORDER_H

#include <stddef.h>
#include <stdint.h>

/* Fill `order` with a permutation of 0 … count-1 that depends on nothing but `seed` and `sweep`. */
void order_shuffle(size_t *order, size_t count, uint64_t seed, uint64_t sweep);

#endif
