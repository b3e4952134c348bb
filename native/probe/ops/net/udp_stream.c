/* Datagrams at a steady rate in one direction: how many are lost, and how evenly the others come. Each
 * carries when it was sent; what is recorded is by how much its way took longer or shorter than that of the
 * one before (RFC 3550, 6.4.1: D), for which the clocks of both sides need not agree. Datagrams go out when
 * it is their time, whatever became of those before. */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "core/clock.h"
#include "core/payload.h"
#include "core/watchdog.h"
#include "probe/net/datagram.h"
#include "probe/net/link.h"
#include "probe/net/socket.h"
#include "probe/operation.h"

enum {
    STREAM_HEADER_BYTES = DATAGRAM_HEADER_BYTES + 8,
    RATE_USUAL = 100, /* Mbit/s */
    RATE_MOST = 100000,
    VISIT_SCALE = 5,
    RESULT_BYTES = 8 + 8 + 1,
    CHUNK_WORDS = 512
};
static const uint64_t AGAIN_NS = 20000000, NS_PER_MBIT_BYTE = 8000;

/* What the responder has found. */
struct found {
    uint64_t received, compared;
    uint64_t *differences_ns;
    uint64_t sent_ns, came_ns; /* of the one before */
    bool corrupt;
};

static double pace_ns(const struct visit *visit) {
    return (double)visit->size * (double)NS_PER_MBIT_BYTE / (double)visit->parameter;
}

/* Whether the error only says that this datagram had no room: then it is lost like any other. */
static bool is_full(int error) { return error == ENOBUFS || error == EAGAIN || error == EINTR; }

static int send_all(struct visit *visit, uint32_t tag, struct failure *failure) {
    const struct net_link *link = visit->link;
    const double pace = pace_ns(visit);
    const uint64_t begin = clock_now_ns();
    for (uint64_t i = 0; i < visit->iterations + 1;
         i++) { /* the first one is what the second is held against */
        const uint64_t due = begin + (uint64_t)((double)i * pace);
        uint64_t now = clock_now_ns();
        while (now < due)
            now = clock_now_ns();
        datagram_mark(visit->buffer, tag, (uint32_t)i);
        put_u64(visit->buffer + DATAGRAM_HEADER_BYTES, now);
        if (send(link->udp, visit->buffer, visit->size, 0) < 0 && !is_full(errno))
            return net_failed(errno, link->peer, failure);
        watchdog_beat();
    }
    visit->lasted_ns = clock_now_ns() - begin;
    visit->sent_per_s = datagram_rate_per_s(visit->iterations, visit->lasted_ns);
    return 0;
}

/* Tell the responder that the visit is over until it has answered: this may be lost as well. */
static int conclude(const struct visit *visit, uint32_t tag, struct failure *failure) {
    const struct net_link *link = visit->link;
    unsigned char datagram[DATAGRAM_HEADER_BYTES];
    datagram_mark(datagram, tag, DATAGRAM_VISIT_OVER);
    do {
        if (send(link->udp, datagram, sizeof datagram, 0) < 0 && !is_full(errno))
            return net_failed(errno, link->peer, failure);
        if (net_is_closed(link->tcp))
            return net_failed(ECONNRESET, link->peer, failure);
    } while (net_wait(link->tcp, clock_now_ns() + AGAIN_NS) == 0);
    return 0;
}

static size_t chunk(uint64_t left) { return left < CHUNK_WORDS ? (size_t)left : CHUNK_WORDS; }

static int hear(struct visit *visit, struct failure *failure) {
    const struct net_link *link = visit->link;
    unsigned char result[RESULT_BYTES];
    if (net_receive(link->tcp, result, sizeof result, link->peer, failure) != 0)
        return -1;
    const uint64_t received = get_u64(result);
    const uint64_t compared = get_u64(result + 8);
    if (received > visit->iterations + 1 || compared > visit->iterations)
        return failure_set(failure, "protocol", link->peer, "%s has received more than was sent", link->peer);
    unsigned char words[CHUNK_WORDS * 8];
    for (uint64_t i = 0; i < compared; i++) {
        if (i % CHUNK_WORDS == 0 &&
            net_receive(link->tcp, words, chunk(compared - i) * 8, link->peer, failure) != 0)
            return -1;
        const uint64_t difference_ns = get_u64(words + i % CHUNK_WORDS * 8);
        visit->total_ns += difference_ns;
        if (visit->times_ns != NULL)
            visit->times_ns[i] = difference_ns;
    }
    visit->timed = compared;
    visit->lost = visit->iterations - compared;
    visit->corrupt = result[16] != 0;
    return 0;
}

static int initiate(struct visit *visit, struct failure *failure) {
    const struct net_link *link = visit->link;
    const uint32_t tag = link->tag + (uint32_t)visit->number;
    if (send_all(visit, tag, failure) != 0 || conclude(visit, tag, failure) != 0)
        return -1;
    return hear(visit, failure);
}

static void take(struct visit *visit, struct found *found) {
    const uint64_t came_ns = clock_now_ns();
    const uint64_t iteration = datagram_iteration(visit->buffer);
    const uint64_t sent_ns = get_u64(visit->buffer + DATAGRAM_HEADER_BYTES);
    if (iteration > visit->iterations || found->received > visit->iterations)
        return;
    if (found->received > 0) {
        /* One that was overtaken was sent before the one before: what lies between both is below zero then.
         */
        const int64_t longer = (int64_t)(came_ns - found->came_ns - (sent_ns - found->sent_ns));
        const uint64_t difference = (uint64_t)(longer < 0 ? -longer : longer);
        found->differences_ns[found->compared++] = difference == 0 ? 1 : difference;
    }
    found->received++;
    found->sent_ns = sent_ns;
    found->came_ns = came_ns;
}

static int tell(const struct visit *visit, const struct found *found, struct failure *failure) {
    const struct net_link *link = visit->link;
    unsigned char result[RESULT_BYTES];
    put_u64(result, found->received);
    put_u64(result + 8, found->compared);
    result[16] = found->corrupt;
    int status = net_send(link->tcp, result, sizeof result, link->peer, failure);
    for (uint64_t i = 0; i < found->compared && status == 0; i += CHUNK_WORDS) {
        unsigned char words[CHUNK_WORDS * 8];
        const size_t count = chunk(found->compared - i);
        for (size_t k = 0; k < count; k++)
            put_u64(words + k * 8, found->differences_ns[i + k]);
        status = net_send(link->tcp, words, count * 8, link->peer, failure);
    }
    return status;
}

static int receive_all(struct visit *visit, struct found *found, struct failure *failure) {
    const struct net_link *link = visit->link;
    const uint32_t tag = link->tag + (uint32_t)visit->number;
    for (;;) {
        const ssize_t n = recv(link->udp, visit->buffer, visit->size + 1, 0);
        if (n < 0 && is_full(errno)) {
            if (net_is_closed(link->tcp))
                return net_failed(ECONNRESET, link->peer, failure);
            continue;
        }
        if (n < 0)
            return net_failed(errno, link->peer, failure);
        if (n < DATAGRAM_HEADER_BYTES || datagram_tag(visit->buffer) != tag)
            continue;
        watchdog_beat();
        if (datagram_iteration(visit->buffer) == DATAGRAM_VISIT_OVER)
            return tell(visit, found, failure);
        if (n != (ssize_t)visit->size)
            continue;
        take(visit, found);
        /* The first one: checking all would make this side late for the next. */
        if (found->received == 1)
            found->corrupt =
                !payload_matches(visit->buffer, STREAM_HEADER_BYTES, visit->size, visit->seed, visit->number);
    }
}

static int respond(struct visit *visit, struct failure *failure) {
    struct found found = {.differences_ns = malloc(visit->iterations * sizeof(uint64_t))};
    if (found.differences_ns == NULL)
        return failure_set(failure, "system", "", "no memory for %llu times",
                           (unsigned long long)visit->iterations);
    net_widen(((const struct net_link *)visit->link)->udp);
    const int status = receive_all(visit, &found, failure);
    free(found.differences_ns);
    return status;
}

static const struct operation OPERATION = {
    .name = "udp_stream",
    .link = LINK_NET,
    .pattern = "stream",
    .quantity = "jitter: change of the way's time from one datagram to the next",
    .divisor = 1,
    .timing = TIMING_ITERATION,
    .lossy = true,
    .tells_sent = true,
    .header_bytes = STREAM_HEADER_BYTES,
    .min_size = STREAM_HEADER_BYTES,
    .max_size = DATAGRAM_MAX_BYTES,
    .visit_scale = VISIT_SCALE,
    .parameter = {.name = "Mbit/s", .usual = RATE_USUAL, .low = 1, .high = RATE_MOST},
    .summary = "Datagrams at a steady rate in one direction: losses, and how evenly the others come",
    .initiate = initiate,
    .respond = respond,
};
WULF_OPERATION(OPERATION)
