/* Several senders to one receiver that begin together: the receiver asks all of them at once. */
#ifndef WULF_NET_INCAST_H
#define WULF_NET_INCAST_H

#include <stdbool.h>
#include <stdint.h>

#include "probe/net/link.h"
#include "probe/operation.h"

/* Receiver: ask all senders for the next message, one right after the other. 0, or -1 with `failure`. */
int incast_ask(const struct net_links *links, struct failure *failure);

/* Sender: wait for the receiver's word. 0, or -1 with `failure`. */
int incast_await(const struct net_link *link, struct failure *failure);

/* Receiver: note the time of an iteration; `whole` says whether all has arrived. */
void incast_note(struct visit *visit, uint64_t time_ns, bool whole);

/* Receiver: print what a visit met, as a line of type `incast` (docs/protocol.md). `arrived` has the bytes of
 * each iteration, NULL where none is ever missing; `again` the segments that each sender sent again, or NULL.
 * 0, or -1 with `failure`. */
int incast_report(const struct visit *visit, const char *op, const uint64_t *times_ns,
                  const uint64_t *arrived, const uint64_t *again, struct failure *failure);

#endif
