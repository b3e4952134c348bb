/* How long a TCP connection takes to be made: a socket, and a round trip until it may send. */
#include <unistd.h>

#include "core/clock.h"
#include "probe/net/connections.h"
#include "probe/net/socket.h"
#include "probe/operation.h"

static int connect_once(const struct net_link *link, const struct endpoint *there, uint64_t *time_ns,
                        struct failure *failure) {
    const uint64_t begin = clock_now_ns();
    const int fd = connections_open(link, there, failure);
    *time_ns = clock_now_ns() - begin;
    if (fd < 0)
        return -1;
    connections_reset(fd);
    return 0;
}

static int initiate(struct visit *visit, struct failure *failure) {
    const struct net_link *link = visit->link;
    struct endpoint there;
    unsigned char done;
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
    return net_receive(link->tcp, &done, 1, link->peer, failure);
}

static int respond(struct visit *visit, struct failure *failure) {
    const struct net_link *link = visit->link;
    const unsigned char done = 1;
    const int listening = connections_listen(link, failure);
    int status = listening < 0 ? -1 : 0;
    for (uint64_t i = 0; i < visit->iterations + 1 && status == 0; i++) {
        const int fd = connections_accept(link, listening, failure);
        status = fd < 0 ? -1 : close(fd);
    }
    if (listening >= 0)
        close(listening);
    return status == 0 ? net_send(link->tcp, &done, 1, link->peer, failure) : -1;
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
