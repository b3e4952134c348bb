/* SHA-256 (FIPS 180-4). */
#ifndef WULF_GUARD_SHA256_H
#define WULF_GUARD_SHA256_H

#include <stddef.h>

/* 64 digits and a NUL. */
void sha256_hex(const void *at, size_t size, char hex[65]);

#endif
