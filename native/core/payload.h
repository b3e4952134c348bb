/* What a message carries: bytes that both ends can make from the seed and the visit. */
#ifndef WULF_PAYLOAD_H
#define WULF_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Fill bytes [from, size) of the message; byte i depends on seed, visit and i alone. */
void payload_fill(unsigned char *message, size_t from, size_t size, uint64_t seed, uint64_t visit);

/* Whether bytes [from, size) are what payload_fill writes. */
bool payload_matches(const unsigned char *message, size_t from, size_t size, uint64_t seed, uint64_t visit);

#endif
