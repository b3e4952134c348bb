#include "probe/net/flows.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/lines.h"
#include "core/sort.h"
#include "probe/net/connections.h"
#include "probe/net/socket.h"
#include "probe/order.h"

enum {
    ANSWER_PORT = 18500, /* the first one that is tried, below those that kernels give away */
    ANSWER_PORTS = 16,
    FIRST_PORT = 20000,
    PORTS = 8192,   /* among so many the source ports are spread */
    STRIDE = 40503, /* odd, so that none comes twice; far apart, as some switches hash neighbours alike */
    IN_A_ROW = 3,   /* without an answer: a flow is asked no more in this visit */
    PORT_BYTES = 4,
};

static void set_port(struct sockaddr_storage *address, uint16_t port) {
    if (address->ss_family == AF_INET6)
        ((struct sockaddr_in6 *)(void *)address)->sin6_port = htons(port);
    else
        ((struct sockaddr_in *)(void *)address)->sin_port = htons(port);
}

/* A socket of an address with this port; -1 where it is taken. */
static int bound(const struct sockaddr_storage *own, socklen_t length, int type, uint16_t port) {
    struct sockaddr_storage address = *own;
    const int yes = 1;
    const int fd = socket(own->ss_family, type | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    set_port(&address, port);
    /* Ports of connections that are over are free; those of datagrams would be shared. */
    if (type == SOCK_STREAM)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, (const struct sockaddr *)&address, length) == 0)
        return fd;
    close(fd);
    return -1;
}

int flows_listen(const struct net_link *link, int type, uint16_t *port, struct failure *failure) {
    struct sockaddr_storage own = {0};
    socklen_t length = sizeof own;
    unsigned char said[PORT_BYTES];
    if (getsockname(link->tcp, (struct sockaddr *)&own, &length) != 0)
        return net_failed(errno, link->peer, failure);
    for (uint16_t i = 0; i < ANSWER_PORTS; i++) {
        *port = (uint16_t)(ANSWER_PORT + i);
        const int fd = bound(&own, length, type, *port);
        if (fd < 0)
            continue;
        put_u32(said, *port);
        if ((type != SOCK_STREAM || listen(fd, SOMAXCONN) == 0) &&
            net_send(link->tcp, said, sizeof said, link->peer, failure) == 0)
            return fd;
        close(fd);
        return -1;
    }
    return failure_set(failure, "system", "", "ports %d to %d are all taken", ANSWER_PORT,
                       ANSWER_PORT + ANSWER_PORTS - 1);
}

int flows_bind(struct flows *flows, const struct visit *visit, int type, struct sockaddr_storage *there,
               socklen_t *length, struct failure *failure) {
    const struct net_link *link = visit->link;
    struct endpoint answering;
    struct sockaddr_storage own = {0};
    socklen_t own_length = sizeof own;
    if (connections_hear(link, &answering, failure) != 0)
        return -1;
    *there = answering.address;
    *length = answering.length;
    flows->port = net_port_of(there);
    if (getsockname(link->tcp, (struct sockaddr *)&own, &own_length) != 0)
        return net_failed(errno, link->peer, failure);
    flows->times_ns = malloc(visit->parameter * visit->iterations * sizeof *flows->times_ns);
    if (flows->times_ns == NULL)
        return failure_set(failure, "system", "", "no memory for %zu flows", (size_t)visit->parameter);
    for (uint64_t i = 0; i < PORTS && flows->count < visit->parameter; i++) {
        const uint16_t port =
            (uint16_t)(link->first_port != 0 ? link->first_port + i : FIRST_PORT + i * STRIDE % PORTS);
        const int fd = bound(&own, own_length, type, port);
        if (fd < 0 && errno != EADDRINUSE)
            return net_failed(errno, link->peer, failure);
        if (fd < 0)
            continue;
        uint64_t *const times_ns = flows->times_ns + flows->count * visit->iterations;
        flows->each[flows->count++] = (struct flow){.fd = fd, .port = port, .times_ns = times_ns};
    }
    return 0;
}

const size_t *flows_order(struct flows *flows, const struct visit *visit, uint64_t round) {
    order_shuffle(flows->order, flows->count, visit->seed + visit->number, round);
    return flows->order;
}

int flow_is_dead(const struct flow *flow) { return flow->fd < 0 || flow->in_a_row >= IN_A_ROW; }

void flow_answered(struct flow *flow, uint64_t time_ns) {
    flow->times_ns[flow->answered++] = time_ns;
    flow->sent++;
    flow->in_a_row = 0;
}

void flow_lost(struct flow *flow) {
    flow->sent++;
    flow->in_a_row++;
}

void flow_late(struct flow *flow) {
    flow->late++;
    flow->in_a_row = 0;
}

static void add_counts(struct record *record, const char *key, const struct flows *flows, size_t offset) {
    uint64_t counts[FLOWS_MOST];
    for (size_t i = 0; i < flows->count; i++)
        counts[i] = *(const uint32_t *)(const void *)((const char *)&flows->each[i] + offset);
    record_wholes(record, key, counts, flows->count);
}

/* Where much is lost, waiting is most of the time: a visit ends after so long, whatever is missing of it. */
static const uint64_t VISIT_NS = 3000000000;

/* A request on each flow, as long as there is time; the mean time of those that were answered, or 0. */
static int make_round(struct flows *flows, struct visit *visit, uint64_t round, uint64_t deadline_ns,
                      flow_ask ask, uint64_t *mean_ns, struct failure *failure) {
    const size_t *order = flows_order(flows, visit, round);
    uint64_t total_ns = 0;
    uint64_t answered = 0;
    for (size_t i = 0; i < flows->count && clock_now_ns() < deadline_ns; i++) {
        struct flow *flow = &flows->each[order[i]];
        const uint32_t before = flow->answered;
        if (flow_is_dead(flow))
            continue;
        if (ask(visit, flow, order[i], (uint32_t)round + 1, failure) != 0)
            return -1;
        total_ns += flow->answered > before ? flow->times_ns[before] : 0;
        answered += flow->answered - before;
    }
    *mean_ns = answered > 0 ? total_ns / answered : 0;
    return 0;
}

int flows_make(struct flows *flows, struct visit *visit, flow_ask ask, struct failure *failure) {
    int status = 0;
    const uint64_t begin = clock_now_ns();
    const uint64_t deadline_ns = begin + VISIT_NS;
    for (uint64_t i = 0; status == 0 && i < visit->iterations && clock_now_ns() < deadline_ns; i++) {
        uint64_t mean_ns = 0;
        status = make_round(flows, visit, i, deadline_ns, ask, &mean_ns, failure);
        visit->lost += mean_ns == 0;
        if (mean_ns == 0)
            continue;
        if (visit->times_ns != NULL)
            visit->times_ns[visit->timed] = mean_ns;
        visit->timed++;
        visit->total_ns += mean_ns;
    }
    visit->lasted_ns = clock_now_ns() - begin;
    return status;
}

int flows_report(const struct flows *flows, const struct visit *visit, const char *op,
                 struct failure *failure) {
    struct record record = {0};
    uint64_t ports[FLOWS_MOST];
    double medians_ns[FLOWS_MOST];
    for (size_t i = 0; i < flows->count; i++) {
        const struct flow *flow = &flows->each[i];
        ports[i] = flow->port;
        medians_ns[i] = flow->answered == 0 ? (double)NAN : median_u64(flow->times_ns, flow->answered);
    }
    record_begin(&record, "flows");
    record_pair_string(&record, "op", op);
    record_pair_unsigned(&record, "size", visit->size);
    record_pair_unsigned(&record, "visit", visit->number);
    record_pair_unsigned(&record, "port", flows->port);
    record_wholes(&record, "ports", ports, flows->count);
    add_counts(&record, "sent", flows, offsetof(struct flow, sent));
    add_counts(&record, "answered", flows, offsetof(struct flow, answered));
    add_counts(&record, "arrived", flows, offsetof(struct flow, arrived));
    add_counts(&record, "late", flows, offsetof(struct flow, late));
    add_counts(&record, "again", flows, offsetof(struct flow, again));
    record_doubles(&record, "medians_ns", medians_ns, flows->count, 1);
    if (line_write(&record, STDOUT_FILENO) == 0)
        return 0;
    return failure_set(failure, "system", "", "cannot write to standard output: %s", strerror(errno));
}

void flows_close(struct flows *flows) {
    for (size_t i = 0; i < flows->count; i++)
        if (flows->each[i].fd >= 0)
            connections_reset(flows->each[i].fd);
    free(flows->times_ns);
}
