/* Bursts of datagrams as fast as they can be sent, back to back (RFC 2544, 26.4): a burst is whole where all
 * of it has arrived. What is recorded is the time from its first datagram until the responder has said how
 * many came, of whole bursts; the others are lost. Beside it stands the rate at which the datagrams
 * of the fastest burst were sent: a buffer that holds all bursts of a visit holds this one. */
#include <errno.h>
#include <sys/socket.h>

#include "core/clock.h"
#include "core/watchdog.h"
#include "probe/net/datagram.h"
#include "probe/net/link.h"
#include "probe/net/socket.h"
#include "probe/operation.h"

enum {
    BURST_USUAL = 100, /* datagrams */
    BURST_MOST = 1000000,
    VISIT_SCALE = 5
};
/* Datagrams that have not come so long after the sender's word, with none in between, are lost. */
static const uint64_t QUIET_NS = 200000000, LOOK_NS = 200000;

static bool is_full(int error) { return error == ENOBUFS || error == EAGAIN || error == EINTR; }

static uint32_t tag_of(const struct visit *visit, const struct net_link *link) {
    return link->tag + (uint32_t)visit->number;
}

static int send_burst(struct visit *visit, uint32_t burst, struct failure *failure) {
    const struct net_link *link = visit->link;
    for (uint64_t i = 0; i < (uint64_t)visit->parameter; i++) {
        datagram_mark(visit->buffer, tag_of(visit, link), burst);
        while (send(link->udp, visit->buffer, visit->size, 0) < 0) {
            if (!is_full(errno))
                return net_failed(errno, link->peer, failure);
            if (errno == ENOBUFS)
                break; /* it is lost like any other */
        }
    }
    watchdog_beat();
    return 0;
}

static int initiate(struct visit *visit, struct failure *failure) {
    const struct net_link *link = visit->link;
    uint64_t least_ns = UINT64_MAX;
    net_widen(link->udp);
    for (uint64_t i = 0; i < visit->iterations; i++) {
        unsigned char over = 1, count[8];
        const uint64_t begin = clock_now_ns();
        if (send_burst(visit, (uint32_t)i, failure) != 0)
            return -1;
        const uint64_t sending_ns = clock_now_ns() - begin;
        least_ns = sending_ns < least_ns ? sending_ns : least_ns;
        if (net_send(link->tcp, &over, 1, link->peer, failure) != 0 ||
            net_receive(link->tcp, count, sizeof count, link->peer, failure) != 0)
            return -1;
        const uint64_t time_ns = clock_now_ns() - begin, came = get_u64(count);
        if (came > (uint64_t)visit->parameter)
            return failure_set(failure, "protocol", link->peer, "%s has received more than was sent",
                               link->peer);
        visit->lasted_ns += time_ns;
        if (came < (uint64_t)visit->parameter)
            continue;
        if (visit->times_ns != NULL)
            visit->times_ns[visit->timed] = time_ns;
        visit->total_ns += time_ns;
        visit->timed++;
    }
    visit->lost = visit->iterations - visit->timed;
    visit->sent_per_s = datagram_rate_per_s((uint64_t)visit->parameter, least_ns);
    return 0;
}

/* Whether a datagram of the burst was there to be taken. */
static int take(struct visit *visit, uint32_t burst, uint64_t *came, struct failure *failure) {
    const struct net_link *link = visit->link;
    const ssize_t n = recv(link->udp, visit->buffer, visit->size + 1, MSG_DONTWAIT);
    if (n < 0)
        return is_full(errno) ? 0 : net_failed(errno, link->peer, failure);
    if (n == (ssize_t)visit->size && datagram_tag(visit->buffer) == tag_of(visit, link) &&
        datagram_iteration(visit->buffer) == burst)
        (*came)++;
    return 1;
}

/* Take all of a burst: until the sender has said that it is over, and none has come for a while. */
static int take_burst(struct visit *visit, uint32_t burst, uint64_t *came, struct failure *failure) {
    const struct net_link *link = visit->link;
    bool over = false;
    uint64_t last_ns = clock_now_ns();
    while (*came < (uint64_t)visit->parameter || !over) {
        const int taken = take(visit, burst, came, failure);
        if (taken < 0)
            return -1;
        const uint64_t now = clock_now_ns();
        if (taken > 0)
            last_ns = now;
        if (over && now - last_ns > QUIET_NS)
            break;
        if (taken == 0 && !over && net_wait(link->tcp, now + LOOK_NS) > 0) {
            unsigned char word;
            if (net_receive(link->tcp, &word, 1, link->peer, failure) != 0)
                return -1;
            over = true;
            last_ns = clock_now_ns();
        }
        watchdog_beat();
    }
    return 0;
}

static int respond(struct visit *visit, struct failure *failure) {
    const struct net_link *link = visit->link;
    net_widen(link->udp);
    for (uint64_t i = 0; i < visit->iterations; i++) {
        unsigned char count[8];
        uint64_t came = 0;
        if (take_burst(visit, (uint32_t)i, &came, failure) != 0)
            return -1;
        put_u64(count, came);
        if (net_send(link->tcp, count, sizeof count, link->peer, failure) != 0)
            return -1;
    }
    return 0;
}

static const struct operation OPERATION = {
    .name = "udp_burst",
    .link = LINK_NET,
    .pattern = "burst",
    .quantity = "time of a whole burst",
    .divisor = 1,
    .timing = TIMING_ITERATION,
    .lossy = true,
    .tells_sent = true,
    .header_bytes = DATAGRAM_HEADER_BYTES,
    .min_size = DATAGRAM_HEADER_BYTES,
    .max_size = DATAGRAM_MAX_BYTES,
    .visit_scale = VISIT_SCALE,
    .parameter = {.name = "datagrams", .usual = BURST_USUAL, .low = 1, .high = BURST_MOST},
    .summary = "Bursts of datagrams back to back: how many of them arrive whole",
    .initiate = initiate,
    .respond = respond,
};
WULF_OPERATION(OPERATION)
