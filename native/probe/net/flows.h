/* Many flows between the same two addresses: each from a source port of its own, so that switches which
 * choose a path by addresses and ports choose one for each of them. The ports are the same in every launch:
 * who has seen what a flow meets can send another one the same way. */
#ifndef WULF_NET_FLOWS_H
#define WULF_NET_FLOWS_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

#include "probe/net/link.h"
#include "probe/operation.h"

enum { FLOWS_USUAL = 32, FLOWS_MOST = 256 };

/* What a flow met in one visit. */
struct flow {
    int fd; /* -1 where none could be opened */
    uint16_t port;
    uint32_t sent, answered, arrived;
    uint32_t late;      /* answers that came after they were given up: not lost, and not timed */
    uint32_t in_a_row;  /* requests without an answer, at the end */
    uint32_t again;     /* segments that were sent again */
    uint64_t *times_ns; /* of the answered ones */
};

struct flows {
    struct flow each[FLOWS_MOST];
    size_t count;
    uint16_t port; /* of the other side */
    uint64_t *times_ns;
    size_t order[FLOWS_MOST];
};

/* A socket of the link's own address at the first of the ports for answering that is free. The socket, or -1
 * with `failure`. */
int flows_listen(const struct net_link *link, int type, uint16_t *port, struct failure *failure);

/* Initiator: bind so many sockets to ports that are free, and give them the address of the other side. 0, or
 * -1. */
int flows_bind(struct flows *flows, const struct visit *visit, int type, struct sockaddr_storage *there,
               socklen_t *length, struct failure *failure);

/* The flows in another order for each round. */
const size_t *flows_order(struct flows *flows, const struct visit *visit, uint64_t round);

/* Whether a flow is asked no more in this visit: nothing comes back. */
int flow_is_dead(const struct flow *flow);

/* Note the answer to a request, or that there is none. */
void flow_answered(struct flow *flow, uint64_t time_ns);
void flow_lost(struct flow *flow);
void flow_late(struct flow *flow);

/* One request on a flow of this index, noted there; -1 when the peer is gone. Rounds are counted from 1. */
typedef int (*flow_ask)(struct visit *visit, struct flow *flow, size_t index, uint32_t round,
                        struct failure *failure);

/* Initiator: make the rounds of a visit, a request on each flow; the time of a round is the mean of those
 * that were answered. 0, or -1. */
int flows_make(struct flows *flows, struct visit *visit, flow_ask ask, struct failure *failure);

/* Print what the flows of a visit met, as a line of type `flows` (docs/protocol.md). 0, or -1 with `failure`.
 */
int flows_report(const struct flows *flows, const struct visit *visit, const char *op,
                 struct failure *failure);

void flows_close(struct flows *flows);

#endif
