#include "core/histogram.h"

#include <stdlib.h>

#ifdef WULF_SYSTEM_HDR
#include <hdr/hdr_histogram.h>
#else
#include "hdr_histogram.h"
#endif

static const int64_t LONGEST_NS = INT64_C(3600000000000);
enum { SIGNIFICANT_DIGITS = 3 };

struct histogram {
    struct hdr_histogram *hdr;
    uint64_t count, min_ns, max_ns; /* the library knows minimum and maximum to three digits only */
};

struct histogram *histogram_new(void) {
    struct histogram *histogram = calloc(1, sizeof *histogram);
    if (histogram != NULL && hdr_init(1, LONGEST_NS, SIGNIFICANT_DIGITS, &histogram->hdr) != 0) {
        free(histogram);
        return NULL;
    }
    return histogram;
}

void histogram_free(struct histogram *histogram) {
    if (histogram == NULL)
        return;
    hdr_close(histogram->hdr);
    free(histogram);
}

bool histogram_add(struct histogram *histogram, uint64_t value_ns) {
    if (value_ns > (uint64_t)LONGEST_NS || !hdr_record_value(histogram->hdr, (int64_t)value_ns))
        return false;
    if (histogram->count == 0 || value_ns < histogram->min_ns)
        histogram->min_ns = value_ns;
    if (value_ns > histogram->max_ns)
        histogram->max_ns = value_ns;
    histogram->count++;
    return true;
}

uint64_t histogram_count(const struct histogram *histogram) { return histogram->count; }
uint64_t histogram_min_ns(const struct histogram *histogram) { return histogram->min_ns; }
uint64_t histogram_max_ns(const struct histogram *histogram) { return histogram->max_ns; }

bool histogram_next(const struct histogram *histogram, size_t *cursor, uint64_t *value_ns, uint64_t *count) {
    const struct hdr_histogram *hdr = histogram->hdr;
    while (*cursor < (size_t)hdr->counts_len) {
        const int32_t index = (int32_t)*cursor;
        ++*cursor;
        const int64_t counted = hdr_count_at_index(hdr, index);
        if (counted <= 0)
            continue;
        uint64_t value = (uint64_t)hdr_median_equivalent_value(hdr, hdr_value_at_index(hdr, index));
        if (value < histogram->min_ns)
            value = histogram->min_ns;
        if (value > histogram->max_ns)
            value = histogram->max_ns;
        *value_ns = value;
        *count = (uint64_t)counted;
        return true;
    }
    return false;
}
