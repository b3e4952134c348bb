/* Request and response over UDP. An answer that does not come in time is lost: counted, never timed. */
#include <errno.h>
#include <sys/socket.h>

#include "core/clock.h"
#include "core/watchdog.h"
#include "probe/net/datagram.h"
#include "probe/net/link.h"
#include "probe/net/socket.h"
#include "probe/operation.h"

enum {
    LOST_PER_VISIT = 5 /* then the visit ends: bounds the time that is lost by waiting */
};
static const uint64_t AGAIN_NS = 20000000;

enum outcome { ANSWERED, LOST, FAILED };

/* A socket call failed: our own fault, or is the peer gone? */
static enum outcome judge(int error, const struct net_link *link, struct failure *failure) {
    if (error == EINTR || error == EAGAIN || error == EWOULDBLOCK)
        return net_is_closed(link->tcp) ? (net_failed(ECONNRESET, link->peer, failure), FAILED) : LOST;
    net_failed(error, link->peer, failure);
    return FAILED;
}

/* The answer to this iteration; late answers to others are discarded. */
static enum outcome await(struct visit *visit, uint32_t tag, uint32_t iteration, uint64_t sent_ns,
                          struct failure *failure) {
    const struct net_link *link = visit->link;
    for (;;) {
        const ssize_t n = recv(link->udp, visit->spare, visit->size + 1, 0);
        if (n < 0 && errno != EINTR)
            return judge(errno, link, failure);
        if (n == (ssize_t)visit->size && datagram_tag(visit->spare) == tag &&
            datagram_iteration(visit->spare) == iteration)
            break;
        if (clock_now_ns() - sent_ns > link->datagram_timeout_ns)
            return LOST;
    }
    unsigned char *const received = visit->spare;
    visit->spare = visit->buffer;
    visit->buffer = received;
    return ANSWERED;
}

static enum outcome bounce(struct visit *visit, uint32_t tag, uint32_t iteration, uint64_t sent_ns,
                           struct failure *failure) {
    const struct net_link *link = visit->link;
    datagram_mark(visit->buffer, tag, iteration);
    if (send(link->udp, visit->buffer, visit->size, 0) < 0)
        return judge(errno, link, failure);
    return await(visit, tag, iteration, sent_ns, failure);
}

/* Tell the responder that the visit is over until it says so too: these datagrams may be lost as well. */
static int conclude(const struct visit *visit, uint32_t tag, struct failure *failure) {
    const struct net_link *link = visit->link;
    unsigned char datagram[DATAGRAM_HEADER_BYTES];
    unsigned char done;
    datagram_mark(datagram, tag, DATAGRAM_VISIT_OVER);
    do {
        if (send(link->udp, datagram, sizeof datagram, 0) < 0 && judge(errno, link, failure) == FAILED)
            return -1;
    } while (net_wait(link->tcp, clock_now_ns() + AGAIN_NS) == 0);
    return net_receive(link->tcp, &done, 1, link->peer, failure);
}

static int initiate(struct visit *visit, struct failure *failure) {
    const struct net_link *link = visit->link;
    const uint32_t tag = link->tag + (uint32_t)visit->number;
    enum outcome outcome = bounce(visit, tag, 0, clock_now_ns(), failure); /* finds a busy responder */
    visit->lost = outcome == LOST;
    uint64_t before = clock_now_ns();
    for (uint64_t i = 0; i < visit->iterations && visit->lost < LOST_PER_VISIT && outcome != FAILED; i++) {
        outcome = bounce(visit, tag, (uint32_t)i + 1, before, failure);
        const uint64_t now = clock_now_ns();
        if (outcome == ANSWERED) {
            watchdog_beat();
            if (visit->times_ns != NULL)
                visit->times_ns[visit->timed] = now - before;
            visit->timed++;
            visit->total_ns += now - before;
        } else
            visit->lost++;
        before = now;
    }
    return outcome == FAILED ? -1 : conclude(visit, tag, failure);
}

static int respond(struct visit *visit, struct failure *failure) {
    const struct net_link *link = visit->link;
    const uint32_t tag = link->tag + (uint32_t)visit->number;
    const unsigned char done = 1;
    for (;;) {
        const ssize_t n = recv(link->udp, visit->buffer, visit->size + 1, 0);
        if (n < 0) {
            if (judge(errno, link, failure) == FAILED)
                return -1;
            continue;
        }
        if (n < DATAGRAM_HEADER_BYTES || datagram_tag(visit->buffer) != tag)
            continue;
        watchdog_beat();
        if (datagram_iteration(visit->buffer) == DATAGRAM_VISIT_OVER)
            return net_send(link->tcp, &done, 1, link->peer, failure);
        if (n == (ssize_t)visit->size && send(link->udp, visit->buffer, visit->size, 0) < 0 &&
            judge(errno, link, failure) == FAILED)
            return -1;
    }
}

static const struct operation OPERATION = {
    .name = "udp_rr",
    .link = LINK_NET,
    .pattern = "ping-pong",
    .quantity = "half round trip",
    .divisor = 2,
    .moves_bytes = true,
    .usual = 3,
    .lossy = true,
    .echoes = true,
    .header_bytes = DATAGRAM_HEADER_BYTES,
    .min_size = DATAGRAM_HEADER_BYTES,
    .max_size = DATAGRAM_MAX_BYTES,
    .summary = "Request and response of the same size in numbered UDP datagrams; losses are counted",
    .initiate = initiate,
    .respond = respond,
};
WULF_OPERATION(OPERATION)
