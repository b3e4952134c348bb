/* A message from each of several senders to one receiver, all at once (incast): it asks all of them, and the
 * time runs until it has all of every message. The connections stay, and so do their congestion windows, as
 * those of an MPI library. How many segments each sender sent again is printed after every visit. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "core/clock.h"
#include "core/payload.h"
#include "core/watchdog.h"
#include "probe/net/incast.h"
#include "probe/net/socket.h"

/* Timeouts make times that never settle. */
enum { WARMUP_VISITS = 3 };
enum { VISIT_SCALE = 5, LOOK_MS = 100, AGAIN_BYTES = 4 };
static const char NAME[] = "tcp_incast";

/* Take what there is of a sender's message; -1 with `failure` where the connection is over. */
static int take(const struct visit *visit, const struct net_link *link, size_t *got,
                struct failure *failure) {
    const ssize_t n = recv(link->tcp, visit->spare + *got, visit->size - *got, MSG_DONTWAIT);
    if (n == 0)
        return net_failed(ECONNRESET, link->peer, failure);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : net_failed(errno, link->peer, failure);
    *got += (size_t)n;
    watchdog_beat();
    return 0;
}

/* Take one message of every sender, as they come. */
static int take_all(const struct visit *visit, struct failure *failure) {
    const struct net_links *links = visit->link;
    struct pollfd ready[LINKS_MOST];
    size_t got[LINKS_MOST] = {0};
    size_t open = links->count;
    for (size_t i = 0; i < links->count; i++)
        ready[i] = (struct pollfd){.fd = links->each[i].tcp, .events = POLLIN};
    while (open > 0) {
        if (poll(ready, links->count, LOOK_MS) < 0 && errno != EINTR)
            return net_failed(errno, "", failure);
        for (size_t i = 0; i < links->count; i++) {
            if (ready[i].fd < 0 || ready[i].revents == 0)
                continue;
            if (take(visit, &links->each[i], &got[i], failure) != 0)
                return -1;
            if (got[i] == visit->size) {
                ready[i].fd = -1;
                open--;
            }
        }
    }
    return 0;
}

static int initiate(struct visit *visit, struct failure *failure) {
    const struct net_links *links = visit->link;
    uint64_t again[LINKS_MOST];
    uint64_t *times_ns = calloc(visit->iterations, sizeof *times_ns);
    int status = times_ns == NULL ? failure_set(failure, "system", "", "no memory for the times") : 0;
    for (uint64_t i = 0; status == 0 && i < visit->iterations; i++) {
        const uint64_t begin = clock_now_ns();
        status = incast_ask(links, failure) != 0 ? -1 : take_all(visit, failure);
        times_ns[i] = clock_now_ns() - begin;
        incast_note(visit, times_ns[i], true);
    }
    for (size_t i = 0; status == 0 && i < links->count; i++) {
        unsigned char said[AGAIN_BYTES];
        status = net_receive(links->each[i].tcp, said, sizeof said, links->each[i].peer, failure);
        again[i] = get_u32(said);
    }
    visit->corrupt = !payload_matches(visit->spare, 0, visit->size, visit->seed, visit->number);
    if (status == 0)
        status = incast_report(visit, NAME, times_ns, NULL, again, failure);
    free(times_ns);
    return status;
}

/* How many segments of the connection were sent again. */
static uint32_t sent_again(const struct net_link *link) {
    struct tcp_info info = {0};
    socklen_t length = sizeof info;
    if (getsockopt(link->tcp, IPPROTO_TCP, TCP_INFO, &info, &length) != 0)
        return 0;
    return info.tcpi_total_retrans;
}

static int respond(struct visit *visit, struct failure *failure) {
    const struct net_link *link = visit->link;
    const uint32_t before = sent_again(link);
    unsigned char said[AGAIN_BYTES];
    payload_fill(visit->buffer, 0, visit->size, visit->seed, visit->number);
    for (uint64_t i = 0; i < visit->iterations; i++)
        if (incast_await(link, failure) != 0 ||
            net_send(link->tcp, visit->buffer, visit->size, link->peer, failure) != 0)
            return -1;
    /* The receiver has not got all of the last message yet: what is sent again of it counts in the next
     * visit. */
    put_u32(said, sent_again(link) - before);
    return net_send(link->tcp, said, sizeof said, link->peer, failure);
}

static const struct operation OPERATION = {
    .name = NAME,
    .link = LINK_NET,
    .pattern = "incast",
    .quantity = "time until all messages are there",
    .divisor = 1,
    .group = true,
    .timing = TIMING_ITERATION,
    .min_size = 1,
    .max_size = MESSAGE_MAX_BYTES,
    .visit_scale = VISIT_SCALE,
    .warmup_visits = WARMUP_VISITS,
    .summary = "A message from every other node to the first one at once, over TCP",
    .initiate = initiate,
    .respond = respond,
};
WULF_OPERATION(OPERATION)
