/* A stream of messages over TCP. The receiver acknowledges the end of a visit; the time runs from the first
 * byte sent to that acknowledgement, so one half round trip is spread over all messages of the visit. */
#include "core/clock.h"
#include "core/payload.h"
#include "probe/net/link.h"
#include "probe/net/socket.h"
#include "probe/operation.h"

enum { VISIT_SCALE = 5 }; /* longer visits, so that the acknowledgement weighs little */

enum verdict { VERDICT_GOOD = 1, VERDICT_CORRUPT = 2 };

static int initiate(struct visit *visit, struct failure *failure) {
    const struct net_link *link = visit->link;
    unsigned char answer;
    const uint64_t begin = clock_now_ns();
    for (uint64_t i = 0; i < visit->iterations; i++)
        if (net_send(link->tcp, visit->buffer, visit->size, link->peer, failure) != 0)
            return -1;
    if (net_receive(link->tcp, &answer, 1, link->peer, failure) != 0)
        return -1;
    visit->total_ns = clock_now_ns() - begin;
    visit->timed = visit->iterations;
    if (net_receive(link->tcp, &answer, 1, link->peer, failure) != 0)
        return -1;
    visit->corrupt = answer != VERDICT_GOOD;
    return 0;
}

static int respond(struct visit *visit, struct failure *failure) {
    const struct net_link *link = visit->link;
    const unsigned char received = VERDICT_GOOD;
    for (uint64_t i = 0; i < visit->iterations; i++)
        if (net_receive(link->tcp, visit->buffer, visit->size, link->peer, failure) != 0)
            return -1;
    if (net_send(link->tcp, &received, 1, link->peer, failure) != 0)
        return -1;
    const unsigned char verdict = payload_matches(visit->buffer, 0, visit->size, visit->seed, visit->number)
                                      ? VERDICT_GOOD
                                      : VERDICT_CORRUPT;
    return net_send(link->tcp, &verdict, 1, link->peer, failure);
}

static const struct operation OPERATION = {
    .name = "tcp_stream",
    .link = LINK_NET,
    .pattern = "stream",
    .quantity = "time per message",
    .divisor = 1,
    .moves_bytes = true,
    .usual = 4,
    .timing = TIMING_BATCH,
    .min_size = 1,
    .max_size = MESSAGE_MAX_BYTES,
    .visit_scale = VISIT_SCALE,
    .summary = "Messages in one direction over one TCP connection, acknowledged at the end of a visit",
    .initiate = initiate,
    .respond = respond,
};
WULF_OPERATION(OPERATION)
