/* Requests and responses over UDP on many flows in turn, one at a time. An iteration is a round: a request on
 * each flow. What each flow met is printed after every visit; the other side says how many requests arrived,
 * so that it is known in which direction one was lost. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "core/clock.h"
#include "core/watchdog.h"
#include "probe/net/connections.h"
#include "probe/net/datagram.h"
#include "probe/net/flows.h"
#include "probe/net/socket.h"

enum { FLOW_AT = DATAGRAM_HEADER_BYTES, HEADER_BYTES = 12, COUNT_BYTES = 4, LOOK_MS = 100 };
static const char NAME[] = "udp_flows";

static int open_all(struct flows *flows, const struct visit *visit, struct failure *failure) {
    const struct net_link *link = visit->link;
    struct sockaddr_storage there;
    socklen_t length;
    if (flows_bind(flows, visit, SOCK_DGRAM, &there, &length, failure) != 0)
        return -1;
    const struct timeval patience = {.tv_sec = (time_t)(link->datagram_timeout_ns / 1000000000U),
                                     .tv_usec =
                                         (suseconds_t)(link->datagram_timeout_ns % 1000000000U / 1000)};
    for (size_t i = 0; i < flows->count; i++)
        if (connect(flows->each[i].fd, (const struct sockaddr *)&there, length) != 0 ||
            setsockopt(flows->each[i].fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0)
            return net_failed(errno, link->peer, failure);
    return 0;
}

/* One request on one flow; -1 when the peer is gone. */
static int ask(struct visit *visit, struct flow *flow, size_t index, uint32_t round,
               struct failure *failure) {
    const struct net_link *link = visit->link;
    const uint32_t tag = link->tag + (uint32_t)visit->number;
    datagram_mark(visit->buffer, tag, round);
    put_u32(visit->buffer + FLOW_AT, (uint32_t)index);
    const uint64_t begin = clock_now_ns();
    if (send(flow->fd, visit->buffer, visit->size, 0) < 0 && errno != ECONNREFUSED && errno != EHOSTUNREACH)
        return net_failed(errno, link->peer, failure);
    for (;;) {
        const ssize_t n = recv(flow->fd, visit->spare, visit->size + 1, 0);
        const uint64_t now = clock_now_ns();
        if (n == (ssize_t)visit->size && datagram_tag(visit->spare) == tag &&
            datagram_iteration(visit->spare) == round) {
            flow_answered(flow, now - begin);
            watchdog_beat();
            return 0;
        }
        if (n == (ssize_t)visit->size && datagram_tag(visit->spare) == tag)
            flow_late(flow);
        if ((n < 0 && errno != EINTR) || now - begin > link->datagram_timeout_ns)
            break;
    }
    flow_lost(flow);
    return net_is_closed(link->tcp) ? net_failed(ECONNRESET, link->peer, failure) : 0;
}

/* Take the answers that came after they were given up. */
static void hear_late(const struct visit *visit, struct flow *flow) {
    const struct net_link *link = visit->link;
    const uint32_t tag = link->tag + (uint32_t)visit->number;
    while (flow->sent > flow->answered + flow->late) {
        const ssize_t n = recv(flow->fd, visit->spare, visit->size + 1, MSG_DONTWAIT);
        if (n < 0 && errno != ECONNREFUSED && errno != EINTR)
            return;
        if (n == (ssize_t)visit->size && datagram_tag(visit->spare) == tag)
            flow_late(flow);
    }
}

/* Tell the responder that it is over, and hear how many requests of each flow have arrived. */
static int conclude(const struct visit *visit, struct flows *flows, struct failure *failure) {
    const struct net_link *link = visit->link;
    const unsigned char over = 1;
    unsigned char counts[FLOWS_MOST * COUNT_BYTES];
    if (net_send(link->tcp, &over, 1, link->peer, failure) != 0 ||
        net_receive(link->tcp, counts, visit->parameter * COUNT_BYTES, link->peer, failure) != 0)
        return -1;
    for (size_t i = 0; i < flows->count; i++)
        flows->each[i].arrived = get_u32(counts + i * COUNT_BYTES);
    for (size_t i = 0; i < flows->count; i++)
        hear_late(visit, &flows->each[i]);
    return 0;
}

static int initiate(struct visit *visit, struct failure *failure) {
    struct flows flows = {.count = 0};
    int status = open_all(&flows, visit, failure);
    if (status == 0)
        status = flows_make(&flows, visit, ask, failure);
    if (status == 0)
        status = conclude(visit, &flows, failure);
    if (status == 0)
        status = flows_report(&flows, visit, NAME, failure);
    flows_close(&flows);
    return status;
}

/* Answer what has come. */
static int answer(const struct visit *visit, int fd, uint32_t *counts, struct failure *failure) {
    const struct net_link *link = visit->link;
    struct sockaddr_storage from = {0};
    socklen_t length = sizeof from;
    const ssize_t n =
        recvfrom(fd, visit->buffer, visit->size + 1, MSG_DONTWAIT, (struct sockaddr *)&from, &length);
    if (n != (ssize_t)visit->size || datagram_tag(visit->buffer) != link->tag + (uint32_t)visit->number)
        return 0;
    const uint32_t flow = get_u32(visit->buffer + FLOW_AT);
    if (flow >= visit->parameter)
        return 0;
    counts[flow]++;
    watchdog_beat();
    if (sendto(fd, visit->buffer, visit->size, 0, (const struct sockaddr *)&from, length) < 0 &&
        errno != ECONNREFUSED && errno != EHOSTUNREACH)
        return net_failed(errno, link->peer, failure);
    return 0;
}

static int respond(struct visit *visit, struct failure *failure) {
    const struct net_link *link = visit->link;
    uint32_t counts[FLOWS_MOST] = {0};
    unsigned char said[FLOWS_MOST * COUNT_BYTES];
    unsigned char over;
    uint16_t port;
    const int fd = flows_listen(link, SOCK_DGRAM, &port, failure);
    int status = fd < 0 ? -1 : 0;
    struct pollfd ready[] = {{.fd = link->tcp, .events = POLLIN}, {.fd = fd, .events = POLLIN}};
    while (status == 0 && ready[0].revents == 0)
        if (poll(ready, 2, LOOK_MS) > 0 && ready[1].revents != 0)
            status = answer(visit, fd, counts, failure);
    for (size_t i = 0; i < visit->parameter; i++)
        put_u32(said + i * COUNT_BYTES, counts[i]);
    if (status == 0)
        status = net_receive(link->tcp, &over, 1, link->peer, failure);
    if (status == 0)
        status = net_send(link->tcp, said, visit->parameter * COUNT_BYTES, link->peer, failure);
    if (fd >= 0)
        connections_reset(fd);
    return status;
}

static const struct operation OPERATION = {
    .name = NAME,
    .link = LINK_NET,
    .pattern = "ping-pong of many flows",
    .quantity = "round trip",
    .divisor = 1,
    .timing = TIMING_ITERATION,
    .min_size = HEADER_BYTES,
    .max_size = DATAGRAM_MAX_BYTES,
    .parameter = {.name = "flows", .usual = FLOWS_USUAL, .low = 1, .high = FLOWS_MOST},
    .summary = "Requests and responses over UDP on many flows in turn, each from a source port of its own",
    .initiate = initiate,
    .respond = respond,
};
WULF_OPERATION(OPERATION)
