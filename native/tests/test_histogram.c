#include "core/histogram.h"
#include "core/rng.h"
#include "core/sort.h"
#include "tests/expect.h"

enum { COUNT = 20000 };

/* What comes out adds up, ascends, and is within 0.1 % of what went in. */
static void is_sparse_and_complete(void) {
    static uint64_t values[COUNT];
    struct histogram *histogram = histogram_new();
    uint64_t state = 1;
    for (size_t i = 0; i < COUNT; i++) {
        values[i] = rng_below(&state, UINT64_C(1) << (1 + i % 40));
        EXPECT(histogram_add(histogram, values[i]));
    }
    sort_u64(values, COUNT);
    EXPECT(histogram_count(histogram) == COUNT);
    EXPECT(histogram_min_ns(histogram) == values[0] && histogram_max_ns(histogram) == values[COUNT - 1]);
    size_t cursor = 0, place = 0;
    uint64_t value = 0, count = 0, before = 0;
    while (histogram_next(histogram, &cursor, &value, &count)) {
        EXPECT(count > 0 && (place == 0 || value > before));
        before = value;
        for (uint64_t i = 0; i < count && place < COUNT; i++, place++) {
            const double wrong = (double)value - (double)values[place];
            EXPECT(wrong * wrong <= 1e-6 * (double)values[place] * (double)values[place]);
        }
    }
    EXPECT(place == COUNT);
    histogram_free(histogram);
}

static void refuses_more_than_an_hour(void) {
    struct histogram *histogram = histogram_new();
    EXPECT(!histogram_add(histogram, UINT64_C(3600000000001)));
    EXPECT(!histogram_add(histogram, UINT64_MAX));
    EXPECT(histogram_count(histogram) == 0 && histogram_max_ns(histogram) == 0);
    EXPECT(histogram_add(histogram, 0) && histogram_add(histogram, UINT64_C(3600000000000)));
    EXPECT(histogram_count(histogram) == 2);
    histogram_free(histogram);
}

static void median_is_the_middle(void) {
    EXPECT(median_u64((uint64_t[]){5}, 1) == 5);
    EXPECT(median_u64((uint64_t[]){9, 1, 5}, 3) == 5);
    EXPECT(median_u64((uint64_t[]){9, 1, 5, 6}, 4) == 5.5);
}

int main(void) {
    is_sparse_and_complete();
    refuses_more_than_an_hour();
    median_is_the_middle();
    return EXPECT_STATUS();
}
