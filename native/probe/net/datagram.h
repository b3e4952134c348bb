/* Layout of a datagram: 4 bytes tag of the visit, 4 bytes number of the iteration (little-endian), then
 * payload. */
#ifndef WULF_NET_DATAGRAM_H
#define WULF_NET_DATAGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "probe/command.h"

enum { DATAGRAM_HEADER_BYTES = 8, DATAGRAM_MAX_BYTES = 65507 };

/* Iteration numbers with a meaning of their own. */
#define DATAGRAM_VISIT_OVER UINT32_C(0xffffffff)
#define DATAGRAM_OPEN UINT32_C(0xfffffffe)

static inline void datagram_mark(unsigned char *datagram, uint32_t tag, uint32_t iteration) {
    put_u32(datagram, tag);
    put_u32(datagram + 4, iteration);
}

static inline uint32_t datagram_tag(const unsigned char *datagram) { return get_u32(datagram); }
static inline uint32_t datagram_iteration(const unsigned char *datagram) { return get_u32(datagram + 4); }

#endif
