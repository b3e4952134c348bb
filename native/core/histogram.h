/* High dynamic range histogram with 3 significant digits, from 1 ns to an hour (HdrHistogram_c). */
#ifndef WULF_HISTOGRAM_H
#define WULF_HISTOGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct histogram;

/* A new empty histogram; NULL when there is no memory. */
struct histogram *histogram_new(void);
void histogram_free(struct histogram *histogram);

/* Count a value [ns]; false when it is over an hour, and then it is not counted. */
bool histogram_add(struct histogram *histogram, uint64_t value_ns);

uint64_t histogram_count(const struct histogram *histogram);
/* Exact; 0 while nothing has been counted. */
uint64_t histogram_min_ns(const struct histogram *histogram);
uint64_t histogram_max_ns(const struct histogram *histogram);

/* Step through what was counted, ascending: start with *cursor = 0; false at the end. The value is the
 * middle of its bucket, kept between minimum and maximum. */
bool histogram_next(const struct histogram *histogram, size_t *cursor, uint64_t *value_ns, uint64_t *count);

#endif
