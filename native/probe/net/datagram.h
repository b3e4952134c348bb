/* Layout of a datagram: 4 bytes tag of the visit, 4 bytes number of the iteration (little-endian), then
 * payload. */
#ifndef WULF_NET_DATAGRAM_H
#define WULF_NET_DATAGRAM_H

#include <math.h>
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

/* How many a second so many within a time are; not a number where it took none. */
static inline double datagram_rate_per_s(uint64_t count, uint64_t time_ns) {
    return time_ns == 0 ? (double)NAN : (double)count * 1e9 / (double)time_ns;
}

#endif
