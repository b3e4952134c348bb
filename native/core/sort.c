#include "core/sort.h"

#include <stdlib.h>

static int compare_u64(const void *left, const void *right) {
    const uint64_t a = *(const uint64_t *)left;
    const uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

void sort_u64(uint64_t *values, size_t count) { qsort(values, count, sizeof *values, compare_u64); }

double median_u64(uint64_t *values, size_t count) {
    sort_u64(values, count);
    const size_t middle = count / 2;
    if (count % 2 == 1)
        return (double)values[middle];
    return ((double)values[middle - 1] + (double)values[middle]) / 2;
}
