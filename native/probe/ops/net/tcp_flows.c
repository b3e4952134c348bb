/* Messages over many TCP connections in turn, one at a time, each answered by a byte. An iteration is a
 * round: a message on each connection. Small ones tell what a path's latency is, large ones its rate. What
 * each flow met is printed after every visit. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/watchdog.h"
#include "probe/net/connections.h"
#include "probe/net/flows.h"
#include "probe/net/socket.h"

enum { LOOK_MS = 100 };
static const char NAME[] = "tcp_flows";
/* A connection that is not there, or an answer, after so long is none. */
static const uint64_t WITHIN_NS = 1500000000;

/* Wait for the connections, all at once; what is not there in time is dead. */
static void await_all(struct flows *flows) {
    struct pollfd ready[FLOWS_MOST];
    const uint64_t deadline_ns = clock_now_ns() + WITHIN_NS;
    size_t open = flows->count;
    for (size_t i = 0; i < flows->count; i++)
        ready[i] = (struct pollfd){.fd = flows->each[i].fd, .events = POLLOUT};
    while (open > 0 && clock_now_ns() < deadline_ns) {
        if (poll(ready, flows->count, LOOK_MS) < 0 && errno != EINTR)
            break;
        watchdog_beat();
        for (size_t i = 0; i < flows->count; i++) {
            if (ready[i].fd < 0 || ready[i].revents == 0)
                continue;
            ready[i].fd = -1;
            open--;
        }
    }
    for (size_t i = 0; i < flows->count; i++) {
        struct flow *flow = &flows->each[i];
        int error = 0;
        socklen_t length = sizeof error;
        if (ready[i].fd < 0 && getsockopt(flow->fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0)
            continue;
        connections_reset(flow->fd);
        flow->fd = -1;
        flow_lost(flow);
    }
}

static int open_all(struct flows *flows, const struct visit *visit, struct failure *failure) {
    const struct net_link *link = visit->link;
    struct sockaddr_storage there;
    socklen_t length;
    if (flows_bind(flows, visit, SOCK_STREAM, &there, &length, failure) != 0)
        return -1;
    for (size_t i = 0; i < flows->count; i++) {
        const int fd = flows->each[i].fd;
        net_no_delay(fd);
        if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0)
            return net_failed(errno, link->peer, failure);
        if (connect(fd, (const struct sockaddr *)&there, length) != 0 && errno != EINPROGRESS)
            return net_failed(errno, link->peer, failure);
    }
    await_all(flows);
    return 0;
}

/* Wait until a connection takes or gives something; 1, 0 when the time is over, -1 when it is broken. */
static int await(int fd, short event, uint64_t deadline_ns) {
    struct pollfd ready = {.fd = fd, .events = event};
    while (clock_now_ns() < deadline_ns) {
        const int n = poll(&ready, 1, LOOK_MS);
        if (n > 0)
            return (ready.revents & event) != 0 ? 1 : -1;
        if (n < 0 && errno != EINTR)
            return -1;
    }
    return 0;
}

/* One message on one flow, and its answer; a flow that gives none is not used any more. */
static int ask(struct visit *visit, struct flow *flow, size_t index, uint32_t round,
               struct failure *failure) {
    (void)index, (void)round, (void)failure;
    unsigned char taken;
    size_t sent = 0;
    const uint64_t begin = clock_now_ns();
    uint64_t deadline_ns = begin + WITHIN_NS;
    while (sent < visit->size) {
        const ssize_t n = send(flow->fd, visit->buffer + sent, visit->size - sent, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            break;
        sent += n > 0 ? (size_t)n : 0;
        deadline_ns = n > 0 ? clock_now_ns() + WITHIN_NS : deadline_ns;
        watchdog_beat();
        if (n < 0 && await(flow->fd, POLLOUT, deadline_ns) <= 0)
            break;
    }
    if (sent == visit->size && await(flow->fd, POLLIN, deadline_ns) > 0 &&
        recv(flow->fd, &taken, 1, 0) == 1) {
        flow_answered(flow, clock_now_ns() - begin);
        watchdog_beat();
        return 0;
    }
    flow_lost(flow);
    connections_reset(flow->fd);
    flow->fd = -1;
    return 0;
}

/* How many segments of a connection were sent again. */
static uint32_t sent_again(const struct flow *flow) {
    struct tcp_info info = {0};
    socklen_t length = sizeof info;
    if (flow->fd < 0 || getsockopt(flow->fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0)
        return 0;
    return info.tcpi_total_retrans;
}

static int conclude(const struct visit *visit, struct flows *flows, struct failure *failure) {
    const struct net_link *link = visit->link;
    unsigned char over = 1;
    for (size_t i = 0; i < flows->count; i++) {
        flows->each[i].again = sent_again(&flows->each[i]);
        flows->each[i].arrived = flows->each[i].answered;
    }
    if (net_send(link->tcp, &over, 1, link->peer, failure) != 0 ||
        net_receive(link->tcp, &over, 1, link->peer, failure) != 0)
        return -1;
    return flows_report(flows, visit, NAME, failure);
}

static int initiate(struct visit *visit, struct failure *failure) {
    struct flows flows = {.count = 0};
    int status = open_all(&flows, visit, failure);
    if (status == 0)
        status = flows_make(&flows, visit, ask, failure);
    if (status == 0)
        status = conclude(visit, &flows, failure);
    flows_close(&flows);
    return status;
}

/* Connections that have come, with the bytes of their present message. */
struct guests {
    struct pollfd ready[FLOWS_MOST + 2]; /* the link and the listening socket are the first two */
    size_t heard[FLOWS_MOST + 2];
    size_t count;
};

static void admit(struct guests *guests, const struct visit *visit) {
    const int fd = accept4(guests->ready[1].fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    if (guests->count == visit->parameter + 2) {
        connections_reset(fd);
        return;
    }
    net_no_delay(fd);
    guests->heard[guests->count] = 0;
    guests->ready[guests->count++] = (struct pollfd){.fd = fd, .events = POLLIN};
}

/* Take what a connection has; answer a message that is whole. */
static void hear(struct guests *guests, size_t i, const struct visit *visit) {
    const unsigned char taken = 1;
    const int fd = guests->ready[i].fd;
    const ssize_t n = recv(fd, visit->buffer, visit->size - guests->heard[i], 0);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        connections_reset(fd);
        guests->ready[i].fd = -1;
        return;
    }
    guests->heard[i] += n > 0 ? (size_t)n : 0;
    watchdog_beat();
    if (guests->heard[i] < visit->size)
        return;
    guests->heard[i] = 0;
    (void)!send(fd, &taken, 1, MSG_NOSIGNAL);
}

static int respond(struct visit *visit, struct failure *failure) {
    const struct net_link *link = visit->link;
    struct guests guests = {.count = 2};
    unsigned char over = 0;
    uint16_t port;
    const int listening = flows_listen(link, SOCK_STREAM, &port, failure);
    if (listening < 0)
        return -1;
    fcntl(listening, F_SETFL, O_NONBLOCK);
    guests.ready[0] = (struct pollfd){.fd = link->tcp, .events = POLLIN};
    guests.ready[1] = (struct pollfd){.fd = listening, .events = POLLIN};
    while (guests.ready[0].revents == 0) {
        if (poll(guests.ready, guests.count, LOOK_MS) <= 0)
            continue;
        for (size_t i = 2; i < guests.count; i++)
            if (guests.ready[i].fd >= 0 && guests.ready[i].revents != 0)
                hear(&guests, i, visit);
        if (guests.ready[1].revents != 0)
            admit(&guests, visit);
    }
    for (size_t i = 1; i < guests.count; i++)
        if (guests.ready[i].fd >= 0)
            connections_reset(guests.ready[i].fd);
    return net_receive(link->tcp, &over, 1, link->peer, failure) == 0
               ? net_send(link->tcp, &over, 1, link->peer, failure)
               : -1;
}

static const struct operation OPERATION = {
    .name = NAME,
    .link = LINK_NET,
    .pattern = "messages of many flows",
    .quantity = "time until a message is answered",
    .divisor = 1,
    .timing = TIMING_ITERATION,
    .min_size = 1,
    .max_size = MESSAGE_MAX_BYTES,
    .parameter = {.name = "flows", .usual = FLOWS_USUAL, .low = 1, .high = FLOWS_MOST},
    .summary =
        "Messages that are answered by a byte, over many TCP connections in turn, each from a source port of "
        "its own",
    .initiate = initiate,
    .respond = respond,
};
WULF_OPERATION(OPERATION)
