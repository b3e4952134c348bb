/* How long a TCP connection takes to be made: a socket, and a round trip until it may send. */
#include <unistd.h>

#include "core/clock.h"
#include "probe/net/connections.h"
#include "probe/net/socket.h"
#include "probe/operation.h"

/* The responder says when it has the connection, outside of the time: one that is reset before its last
 * acknowledgement has come through would never be there to be taken. */
static int connect_once(const struct net_link *link, const struct endpoint *there, uint64_t *time_ns,
                        struct failure *failure) {
    unsigned char taken;
    const uint64_t begin = clock_now_ns();
    const int fd = connections_open(link, there, failure);
    *time_ns = clock_now_ns() - begin;
    if (fd < 0)
        return -1;
    const int status = net_receive(link->tcp, &taken, 1, link->peer, failure);
    connections_reset(fd);
    return status;
}

static int initiate(struct visit *visit, struct failure *failure) {
    const struct net_link *link = visit->link;
    struct endpoint there;
    uint64_t time_ns = 0;
    if (connections_hear(link, &there, failure) != 0 || connect_once(link, &there, &time_ns, failure) != 0)
        return -1;
    for (uint64_t i = 0; i < visit->iterations; i++) {
        if (connect_once(link, &there, &time_ns, failure) != 0)
            return -1;
        if (visit->times_ns != NULL)
            visit->times_ns[i] = time_ns;
        visit->total_ns += time_ns;
    }
    visit->timed = visit->iterations;
    return 0;
}

static int respond(struct visit *visit, struct failure *failure) {
    const struct net_link *link = visit->link;
    const unsigned char taken = 1;
    const int listening = connections_listen(link, failure);
    int status = listening < 0 ? -1 : 0;
    for (uint64_t i = 0; i < visit->iterations + 1 && status == 0; i++) {
        const int fd = connections_accept(link, listening, failure);
        status = fd < 0 ? -1 : net_send(link->tcp, &taken, 1, link->peer, failure);
        if (fd >= 0)
            close(fd);
    }
    if (listening >= 0)
        close(listening);
    return status;
}

static const struct operation OPERATION = {
    .name = "tcp_connect",
    .link = LINK_NET,
    .pattern = "connect",
    .quantity = "time to connect",
    .divisor = 1,
    .timing = TIMING_ITERATION,
    .summary = "TCP connections that are made one after the other, until each may send",
    .initiate = initiate,
    .respond = respond,
};
WULF_OPERATION(OPERATION)
