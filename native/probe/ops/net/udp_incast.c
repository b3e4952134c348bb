/* A burst of datagrams from each of several senders to one receiver, all at once: how much of it arrives.
 * As long as the queue before the receiver holds what it cannot pass on, all of it does. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "core/clock.h"
#include "core/watchdog.h"
#include "probe/net/datagram.h"
#include "probe/net/incast.h"
#include "probe/net/socket.h"

enum { DATAGRAM_USUAL = 1472, LOOK_MS = 5, WARMUP_VISITS = 3 };
static const char NAME[] = "udp_incast";
/* Datagrams that have not come so long after the senders' word, with none in between, are lost. */
static const uint64_t QUIET_NS = 40000000;

/* Length of the datagram that follows `done` bytes of a burst: whole ones, and the rest. */
static size_t next_length(const struct visit *visit, size_t done) {
    const size_t left = visit->size - done;
    return left < (size_t)visit->parameter ? left : (size_t)visit->parameter;
}

static uint32_t tag_of(const struct visit *visit, const struct net_link *link) {
    return link->tag + (uint32_t)visit->number;
}

static int send_burst(struct visit *visit, uint32_t burst, struct failure *failure) {
    const struct net_link *link = visit->link;
    for (size_t done = 0, length; done < visit->size; done += length) {
        length = next_length(visit, done);
        datagram_mark(visit->buffer, tag_of(visit, link), burst);
        const size_t sent = length > DATAGRAM_HEADER_BYTES ? length : DATAGRAM_HEADER_BYTES;
        while (send(link->udp, visit->buffer, sent, 0) < 0 && errno != ENOBUFS)
            if (errno != EAGAIN && errno != EINTR)
                return net_failed(errno, link->peer, failure);
        watchdog_beat();
    }
    return 0;
}

static int respond(struct visit *visit, struct failure *failure) {
    const struct net_link *link = visit->link;
    const unsigned char over = 1;
    net_widen(link->udp);
    for (uint64_t i = 0; i < visit->iterations; i++)
        if (incast_await(link, failure) != 0 || send_burst(visit, (uint32_t)i, failure) != 0 ||
            net_send(link->tcp, &over, 1, link->peer, failure) != 0)
            return -1;
    return 0;
}

/* What has come of the bursts of all senders. */
struct gathered {
    uint64_t bytes, last_ns;
    size_t over; /* senders that have sent all */
};

/* Take the datagrams of a sender that are there. */
static int take(const struct visit *visit, const struct net_link *link, uint32_t burst,
                struct gathered *gathered, struct failure *failure) {
    for (;;) {
        const ssize_t n = recv(link->udp, visit->spare, (size_t)visit->parameter + 1, MSG_DONTWAIT);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR ? 0 : net_failed(errno, link->peer, failure);
        if (n < DATAGRAM_HEADER_BYTES || n > (ssize_t)visit->parameter ||
            datagram_tag(visit->spare) != tag_of(visit, link) || datagram_iteration(visit->spare) != burst)
            continue;
        gathered->bytes += (uint64_t)n;
        gathered->last_ns = clock_now_ns();
        watchdog_beat();
    }
}

/* Take what there is, and hear who has sent all; links that have are marked in `ready`. */
static int look(const struct visit *visit, struct pollfd *ready, uint32_t burst, struct gathered *gathered,
                struct failure *failure) {
    const struct net_links *links = visit->link;
    unsigned char word;
    if (poll(ready, 2 * links->count, LOOK_MS) < 0 && errno != EINTR)
        return net_failed(errno, "", failure);
    for (size_t i = 0; i < links->count; i++) {
        if (take(visit, &links->each[i], burst, gathered, failure) != 0)
            return -1;
        struct pollfd *told = &ready[links->count + i];
        if (told->fd < 0 || told->revents == 0)
            continue;
        if (net_receive(told->fd, &word, 1, links->each[i].peer, failure) != 0)
            return -1;
        told->fd = -1;
        gathered->over++;
        gathered->last_ns = clock_now_ns();
    }
    return 0;
}

static int take_bursts(const struct visit *visit, uint32_t burst, struct gathered *gathered,
                       struct failure *failure) {
    const struct net_links *links = visit->link;
    struct pollfd ready[2 * LINKS_MOST];
    for (size_t i = 0; i < links->count; i++) {
        ready[i] = (struct pollfd){.fd = links->each[i].udp, .events = POLLIN};
        ready[links->count + i] = (struct pollfd){.fd = links->each[i].tcp, .events = POLLIN};
    }
    while (gathered->over < links->count || gathered->bytes < links->count * visit->size) {
        if (look(visit, ready, burst, gathered, failure) != 0)
            return -1;
        if (gathered->over == links->count && clock_now_ns() - gathered->last_ns > QUIET_NS)
            break;
    }
    return 0;
}

static int initiate(struct visit *visit, struct failure *failure) {
    const struct net_links *links = visit->link;
    uint64_t *times_ns = calloc(2 * visit->iterations, sizeof *times_ns);
    uint64_t *arrived = times_ns + visit->iterations;
    int status = times_ns == NULL ? failure_set(failure, "system", "", "no memory for the times") : 0;
    for (size_t i = 0; i < links->count; i++)
        net_widen(links->each[i].udp);
    for (uint64_t i = 0; status == 0 && i < visit->iterations; i++) {
        struct gathered gathered = {.bytes = 0};
        const uint64_t begin = clock_now_ns();
        status = incast_ask(links, failure) != 0 ? -1 : take_bursts(visit, (uint32_t)i, &gathered, failure);
        times_ns[i] = gathered.last_ns - begin;
        arrived[i] = gathered.bytes;
        incast_note(visit, times_ns[i], gathered.bytes == links->count * visit->size);
    }
    if (status == 0)
        status = incast_report(visit, NAME, times_ns, arrived, NULL, failure);
    free(times_ns);
    return status;
}

static const struct operation OPERATION = {
    .name = NAME,
    .link = LINK_NET,
    .pattern = "incast",
    .quantity = "time until what arrives of all bursts is there",
    .divisor = 1,
    .group = true,
    .timing = TIMING_ITERATION,
    .lossy = true,
    .min_size = DATAGRAM_HEADER_BYTES,
    .max_size = MESSAGE_MAX_BYTES,
    .warmup_visits = WARMUP_VISITS,
    .parameter = {.name = "bytes of a datagram",
                  .usual = DATAGRAM_USUAL,
                  .low = DATAGRAM_HEADER_BYTES,
                  .high = DATAGRAM_MAX_BYTES},
    .summary = "A burst of datagrams from every other node to the first one at once: how many arrive whole",
    .initiate = initiate,
    .respond = respond,
};
WULF_OPERATION(OPERATION)
