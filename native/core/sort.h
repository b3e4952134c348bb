/* Sorting and the median. */
#ifndef WULF_SORT_H
#define WULF_SORT_H

#include <stddef.h>
#include <stdint.h>

/* Sort ascending, in place. */
void sort_u64(uint64_t *values, size_t count);

/* Median of `count` > 0 values; sorts them. The mean of the middle two when the count is even. */
double median_u64(uint64_t *values, size_t count);

#endif
