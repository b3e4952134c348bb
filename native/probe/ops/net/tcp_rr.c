/* Request and response over TCP: blocking send and receive, no Nagle, the message bounces. */
#include "core/clock.h"
#include "probe/net/link.h"
#include "probe/net/socket.h"
#include "probe/operation.h"

static int bounce(const struct net_link *link, unsigned char *buffer, size_t size, struct failure *failure) {
    if (net_send(link->tcp, buffer, size, link->peer, failure) != 0)
        return -1;
    return net_receive(link->tcp, buffer, size, link->peer, failure);
}

static int initiate(struct visit *visit, struct failure *failure) {
    const struct net_link *link = visit->link;
    uint64_t *const times_ns = visit->times_ns;
    if (bounce(link, visit->buffer, visit->size, failure) != 0) /* finds cold caches and a busy responder */
        return -1;
    const uint64_t begin = clock_now_ns();
    uint64_t before = begin;
    for (uint64_t i = 0; i < visit->iterations; i++) {
        if (bounce(link, visit->buffer, visit->size, failure) != 0)
            return -1;
        if (times_ns != NULL) {
            const uint64_t now = clock_now_ns();
            times_ns[i] = now - before;
            before = now;
        }
    }
    visit->total_ns = clock_now_ns() - begin;
    visit->timed = visit->iterations;
    return 0;
}

static int respond(struct visit *visit, struct failure *failure) {
    const struct net_link *link = visit->link;
    for (uint64_t i = 0; i < visit->iterations + 1; i++)
        if (net_receive(link->tcp, visit->buffer, visit->size, link->peer, failure) != 0 ||
            net_send(link->tcp, visit->buffer, visit->size, link->peer, failure) != 0)
            return -1;
    return 0;
}

static const struct operation OPERATION = {
    .name = "tcp_rr",
    .link = LINK_NET,
    .pattern = "ping-pong",
    .quantity = "half round trip",
    .divisor = 2,
    .moves_bytes = true,
    .usual = 2,
    .echoes = true,
    .min_size = 1,
    .max_size = MESSAGE_MAX_BYTES,
    .summary = "Request and response of the same size over one TCP connection",
    .initiate = initiate,
    .respond = respond,
};
WULF_OPERATION(OPERATION)
