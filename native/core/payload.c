#include "core/payload.h"

#include "core/rng.h"

/* Eight bytes of the message, the lowest first, on machines of either byte order. */
static uint64_t word_at(size_t index, uint64_t base) { return rng_mix(base + (uint64_t)index * RNG_STEP); }

static unsigned char byte_at(size_t offset, uint64_t base) {
    return (unsigned char)(word_at(offset / 8, base) >> (offset % 8 * 8));
}

static uint64_t base_of(uint64_t seed, uint64_t visit) { return rng_mix(seed) ^ rng_mix(visit + RNG_STEP); }

void payload_fill(unsigned char *message, size_t from, size_t size, uint64_t seed, uint64_t visit) {
    const uint64_t base = base_of(seed, visit);
    size_t i = from;
    while (i < size && i % 8 != 0) {
        message[i] = byte_at(i, base);
        i++;
    }
    for (; i + 8 <= size; i += 8) {
        const uint64_t word = word_at(i / 8, base);
        for (unsigned byte = 0; byte < 8; byte++)
            message[i + byte] = (unsigned char)(word >> (byte * 8));
    }
    for (; i < size; i++)
        message[i] = byte_at(i, base);
}

bool payload_matches(const unsigned char *message, size_t from, size_t size, uint64_t seed, uint64_t visit) {
    const uint64_t base = base_of(seed, visit);
    size_t i = from;
    for (; i < size && i % 8 != 0; i++)
        if (message[i] != byte_at(i, base))
            return false;
    for (; i + 8 <= size; i += 8) {
        uint64_t word = 0;
        for (unsigned byte = 0; byte < 8; byte++)
            word |= (uint64_t)message[i + byte] << (byte * 8);
        if (word != word_at(i / 8, base))
            return false;
    }
    for (; i < size; i++)
        if (message[i] != byte_at(i, base))
            return false;
    return true;
}
