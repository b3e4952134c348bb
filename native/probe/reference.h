/* The reference: a short visit of something that only this process takes part in, so that what slows the node
 * down (a neighbour on the core, a hypervisor, the frequency of the CPU) can be told from what slows the
 * network down. No other thread is at the other end: where a process must wait to be woken, a foreign load
 * moves the reference by milliseconds and the figures not at all. */
#ifndef WULF_REFERENCE_H
#define WULF_REFERENCE_H

#include <stddef.h>
#include <stdint.h>

#include "core/failure.h"

enum { REFERENCE_MAX_US = 1000000 };

struct reference;

/* A reference for visits of so many microseconds; NULL with `failure` when there is no memory or no socket.
 */
struct reference *reference_open(uint64_t visit_us, struct failure *failure);
void reference_close(struct reference *reference);

/* One visit: a byte goes through a pair of Unix sockets and back, again and again. `median_ns` receives the
 * median of a round trip. 0, or -1 with `failure`. */
int reference_visit(struct reference *reference, double *median_ns, struct failure *failure);

#endif
