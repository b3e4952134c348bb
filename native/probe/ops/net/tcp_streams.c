/* Several streams at once, each over a TCP connection of its own; otherwise as tcp_stream. An iteration is
 * one message on one of them. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/payload.h"
#include "core/watchdog.h"
#include "probe/net/connections.h"
#include "probe/net/socket.h"
#include "probe/operation.h"

enum { STREAMS_USUAL = 4, STREAMS_MOST = 64, VISIT_SCALE = 5, LOOK_MS = 250, BURST_BYTES = 64 << 10 };
enum verdict { VERDICT_GOOD = 1, VERDICT_CORRUPT = 2 };

struct stream {
    int fd;
    uint64_t left;         /* messages that are not whole yet */
    size_t at;             /* bytes of the present one */
    unsigned char *buffer; /* of the responder: its messages */
};

struct streams {
    struct stream each[STREAMS_MOST];
    size_t count;
};

/* Move what a stream takes or gives now; -1 with errno. */
typedef ssize_t (*move_function)(const struct stream *stream, const unsigned char *message, size_t length);

static ssize_t give(const struct stream *stream, const unsigned char *message, size_t length) {
    return send(stream->fd, message + stream->at, length, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static ssize_t take(const struct stream *stream, const unsigned char *message, size_t length) {
    (void)message;
    const ssize_t n = recv(stream->fd, stream->buffer + stream->at, length, MSG_DONTWAIT);
    if (n != 0)
        return n;
    errno = ECONNRESET;
    return -1;
}

static void share_out(struct streams *streams, const struct visit *visit) {
    for (size_t i = 0; i < streams->count; i++)
        streams->each[i].left = visit->iterations / streams->count + (i < visit->iterations % streams->count);
}

/* What goes at once, but not so much that the others wait long. 0, or -1 with errno. */
static int move_some(struct stream *stream, const struct visit *visit, move_function move) {
    for (size_t moved = 0; moved < BURST_BYTES && stream->left > 0;) {
        const ssize_t n = move(stream, visit->buffer, visit->size - stream->at);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR ? 0 : -1;
        watchdog_beat();
        moved += (size_t)n;
        stream->at += (size_t)n;
        if (stream->at == visit->size) {
            stream->at = 0;
            stream->left--;
        }
    }
    return 0;
}

/* All messages of all streams. */
static int move_all(struct streams *streams, const struct visit *visit, move_function move, short event,
                    struct failure *failure) {
    const struct net_link *link = visit->link;
    for (;;) {
        struct pollfd ready[STREAMS_MOST];
        size_t open = 0;
        for (size_t i = 0; i < streams->count; i++) {
            open += streams->each[i].left > 0;
            ready[i] =
                (struct pollfd){.fd = streams->each[i].left > 0 ? streams->each[i].fd : -1, .events = event};
        }
        if (open == 0)
            return 0;
        if (poll(ready, streams->count, LOOK_MS) < 0 && errno != EINTR)
            return net_failed(errno, link->peer, failure);
        for (size_t i = 0; i < streams->count; i++)
            if (ready[i].revents != 0 && move_some(&streams->each[i], visit, move) != 0)
                return net_failed(errno, link->peer, failure);
    }
}

static void let_go(struct streams *streams) {
    for (size_t i = 0; i < streams->count; i++) {
        close(streams->each[i].fd);
        free(streams->each[i].buffer);
    }
}

static int open_all(struct streams *streams, const struct visit *visit, struct failure *failure) {
    struct endpoint there;
    if (connections_hear(visit->link, &there, failure) != 0)
        return -1;
    while (streams->count < visit->parameter) {
        const int fd = connections_open(visit->link, &there, failure);
        if (fd < 0)
            return -1;
        net_no_delay(fd);
        streams->each[streams->count++] = (struct stream){.fd = fd};
    }
    share_out(streams, visit);
    return 0;
}

static int send_all(struct streams *streams, struct visit *visit, struct failure *failure) {
    const struct net_link *link = visit->link;
    unsigned char answer;
    const uint64_t begin = clock_now_ns();
    if (move_all(streams, visit, give, POLLOUT, failure) != 0 ||
        net_receive(link->tcp, &answer, 1, link->peer, failure) != 0)
        return -1;
    visit->total_ns = clock_now_ns() - begin;
    visit->timed = visit->iterations;
    if (net_receive(link->tcp, &answer, 1, link->peer, failure) != 0)
        return -1;
    visit->corrupt = answer != VERDICT_GOOD;
    return 0;
}

static int initiate(struct visit *visit, struct failure *failure) {
    struct streams streams = {.count = 0};
    int status = open_all(&streams, visit, failure);
    if (status == 0)
        status = send_all(&streams, visit, failure);
    let_go(&streams);
    return status;
}

static int accept_all(struct streams *streams, const struct visit *visit, struct failure *failure) {
    const int listening = connections_listen(visit->link, failure);
    int status = listening < 0 ? -1 : 0;
    while (status == 0 && streams->count < visit->parameter) {
        const int fd = connections_accept(visit->link, listening, failure);
        unsigned char *const buffer = fd < 0 ? NULL : malloc(visit->size);
        if (buffer != NULL)
            streams->each[streams->count++] = (struct stream){.fd = fd, .buffer = buffer};
        else if (fd >= 0) {
            close(fd);
            status = failure_set(failure, "system", "", "no memory for %zu B", visit->size);
        } else
            status = -1;
    }
    if (listening >= 0)
        close(listening);
    share_out(streams, visit);
    return status;
}

/* The last message of every stream that had one. */
static unsigned char check(const struct streams *streams, const struct visit *visit) {
    for (size_t i = 0; i < streams->count && i < visit->iterations; i++)
        if (!payload_matches(streams->each[i].buffer, 0, visit->size, visit->seed, visit->number))
            return VERDICT_CORRUPT;
    return VERDICT_GOOD;
}

static int respond(struct visit *visit, struct failure *failure) {
    const struct net_link *link = visit->link;
    struct streams streams = {.count = 0};
    const unsigned char received = VERDICT_GOOD;
    int status = accept_all(&streams, visit, failure);
    if (status == 0)
        status = move_all(&streams, visit, take, POLLIN, failure);
    if (status == 0)
        status = net_send(link->tcp, &received, 1, link->peer, failure);
    if (status == 0) {
        const unsigned char verdict = check(&streams, visit);
        status = net_send(link->tcp, &verdict, 1, link->peer, failure);
    }
    let_go(&streams);
    return status;
}

static const struct operation OPERATION = {
    .name = "tcp_streams",
    .link = LINK_NET,
    .pattern = "stream",
    .quantity = "time per message",
    .divisor = 1,
    .moves_bytes = true,
    .timing = TIMING_BATCH,
    .min_size = 1,
    .max_size = MESSAGE_MAX_BYTES,
    .visit_scale = VISIT_SCALE,
    .parameter = {.name = "streams", .usual = STREAMS_USUAL, .low = 1, .high = STREAMS_MOST},
    .summary =
        "Messages in one direction over several TCP connections at once, acknowledged at the end of a visit",
    .initiate = initiate,
    .respond = respond,
};
WULF_OPERATION(OPERATION)
