#include "core/payload.h"
#include "tests/expect.h"

enum { SIZE = 1000 };

static void is_the_same_however_it_is_cut(void) {
    unsigned char whole[SIZE], part[SIZE];
    payload_fill(whole, 0, SIZE, 1, 2);
    for (size_t from = 0; from < 20; from++) {
        memcpy(part, whole, SIZE);
        memset(part + from, 0, SIZE - from);
        payload_fill(part, from, SIZE, 1, 2);
        EXPECT(memcmp(part, whole, SIZE) == 0);
    }
}

static void every_flipped_bit_shows(void) {
    unsigned char message[SIZE];
    for (size_t size = 0; size < 30; size++) {
        payload_fill(message, 0, size, 1, 2);
        EXPECT(payload_matches(message, 0, size, 1, 2));
        for (size_t bit = 0; bit < size * 8; bit++) {
            message[bit / 8] ^= (unsigned char)(1U << bit % 8);
            EXPECT(!payload_matches(message, 0, size, 1, 2));
            message[bit / 8] ^= (unsigned char)(1U << bit % 8);
        }
    }
}

static void visits_and_seeds_differ(void) {
    unsigned char message[SIZE];
    payload_fill(message, 0, SIZE, 1, 2);
    EXPECT(!payload_matches(message, 0, SIZE, 1, 3));
    EXPECT(!payload_matches(message, 0, SIZE, 2, 2));
    message[0] ^= 1;
    EXPECT(payload_matches(message, 8, SIZE, 1, 2)); /* the header is not payload */
}

int main(void) {
    is_the_same_however_it_is_cut();
    every_flipped_bit_shows();
    visits_and_seeds_differ();
    return EXPECT_STATUS();
}
