#include "tracer/checksum.h"

#include <stdbool.h>
#include <string.h>

enum { VALUES = 256, BITS = 8 };
#define POLYNOMIAL 0x82f63b78U /* reflected */

static uint32_t plain(uint32_t crc, const unsigned char *data, size_t bytes) {
    static uint32_t table[VALUES];
    static bool known;
    if (!known) {
        for (uint32_t value = 0; value < VALUES; value++) {
            uint32_t rest = value;
            for (int bit = 0; bit < BITS; bit++)
                rest = rest & 1 ? rest >> 1 ^ POLYNOMIAL : rest >> 1;
            table[value] = rest;
        }
        known = true;
    }
    for (size_t place = 0; place < bytes; place++)
        crc = table[(crc ^ data[place]) & (VALUES - 1)] ^ crc >> BITS;
    return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t crc, const unsigned char *data,
                                                                 size_t bytes) {
    uint64_t wide = crc;
    size_t place = 0;
    for (; place + sizeof wide <= bytes; place += sizeof wide) {
        uint64_t word;
        memcpy(&word, data + place, sizeof word);
        wide = __builtin_ia32_crc32di(wide, word);
    }
    return plain((uint32_t)wide, data + place, bytes - place);
}
#endif

uint32_t checksum(uint32_t before, const void *data, size_t bytes) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2"))
        return ~by_instruction(~before, data, bytes);
#endif
    return ~plain(~before, data, bytes);
}
