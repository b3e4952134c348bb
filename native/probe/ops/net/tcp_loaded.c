/* Requests and responses while other data flow between the same nodes: a stream over a connection of its own,
 * held at a share of what the way carries. Requests are due at fixed times, and a response is timed from when
 * its request was due: one that waited for the response before it has waited as a user would (no coordinated
 * omission). */
#include <errno.h>
#include <linux/sockios.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/watchdog.h"
#include "probe/net/connections.h"
#include "probe/net/socket.h"
#include "probe/operation.h"

enum {
    LOAD_USUAL = 50, /* percent of the capacity */
    LOAD_MOST = 100,
    CHUNK_BYTES = 32 << 10,
    VISIT_SCALE = 20
};
static const uint64_t PERIOD_NS = 1000000, RISE_NS = 20000000, CAPACITY_NS = 100000000, ROUND_TRIPS = 4;

/* The stream: one side sends, the other one takes, each in a thread beside the requests. */
struct load {
    int fd;
    double bytes_per_ns;
    atomic_bool over;
    pthread_t thread;
    bool runs;
    int error; /* of the system, which ended it early; read when the thread is over */
    unsigned char chunk[CHUNK_BYTES];
};

static void *flow(void *context) {
    struct load *load = context;
    const uint64_t begin = clock_now_ns();
    double sent = 0;
    while (!atomic_load(&load->over)) {
        const uint64_t due_ns = begin + (uint64_t)(sent / load->bytes_per_ns);
        const uint64_t now = clock_now_ns();
        if (now < due_ns) {
            const struct timespec rest = {.tv_nsec =
                                              (long)(due_ns - now > PERIOD_NS ? PERIOD_NS : due_ns - now)};
            nanosleep(&rest, NULL);
            continue;
        }
        const ssize_t n = send(load->fd, load->chunk, sizeof load->chunk, MSG_NOSIGNAL);
        if (n < 0) {
            load->error = errno;
            break;
        }
        sent += (double)n;
    }
    shutdown(load->fd, SHUT_WR);
    return NULL;
}

static void *drain(void *context) {
    struct load *load = context;
    while (recv(load->fd, load->chunk, sizeof load->chunk, 0) > 0)
        continue;
    return NULL;
}

static int load_start(struct load *load, void *(*work)(void *), struct failure *failure) {
    const int error = pthread_create(&load->thread, NULL, work, load);
    if (error != 0)
        return failure_set(failure, "system", "", "cannot start a thread: %s", strerror(error));
    load->runs = true;
    return 0;
}

/* End the stream; `status`, or -1 with `failure` where it had ended before: what was measured then was not
 * under load. */
static int load_end(struct load *load, int status, const char *peer, struct failure *failure) {
    atomic_store(&load->over, true);
    if (load->runs)
        pthread_join(load->thread, NULL);
    if (status == 0 && load->error != 0)
        status = net_failed(load->error, peer, failure);
    if (load->fd >= 0)
        close(load->fd);
    free(load);
    return status;
}

static struct load *load_new(struct failure *failure) {
    struct load *load = calloc(1, sizeof *load);
    if (load == NULL)
        failure_set(failure, "system", "", "no memory for a stream");
    else
        load->fd = -1;
    return load;
}

/* Send for so long; `given` grows by what the socket has taken. */
static int send_for(uint64_t length_ns, const struct load *load, uint64_t *given, const char *peer,
                    struct failure *failure) {
    const uint64_t begin = clock_now_ns();
    do {
        if (net_send(load->fd, load->chunk, sizeof load->chunk, peer, failure) != 0)
            return -1;
        *given += sizeof load->chunk;
    } while (clock_now_ns() - begin < length_ns);
    return 0;
}

/* Of so many bytes that were given to the socket those that have arrived: what still waits in its buffer,
 * which may be megabytes, says nothing of the way. 0, or -1 with `failure`. */
static int arrived(const struct load *load, uint64_t given, uint64_t *bytes, const char *peer,
                   struct failure *failure) {
    int waiting = 0;
    if (ioctl(load->fd, SIOCOUTQ, &waiting) != 0)
        return net_failed(errno, peer, failure);
    *bytes = given - (uint64_t)waiting;
    return 0;
}

/* What the way carries, found once in a launch: bytes that arrive of a stream as fast as it can be, once it
 * has come up. */
static double capacity(const struct load *load, const struct net_link *link, struct failure *failure) {
    static double known;
    if (known > 0)
        return known;
    uint64_t given = 0, before = 0, after = 0;
    if (send_for(RISE_NS, load, &given, link->peer, failure) != 0 ||
        arrived(load, given, &before, link->peer, failure) != 0)
        return -1;
    const uint64_t begin = clock_now_ns();
    do {
        if (send_for(CAPACITY_NS, load, &given, link->peer, failure) != 0 ||
            arrived(load, given, &after, link->peer, failure) != 0)
            return -1;
    } while (after == before);
    known = (double)(after - before) / (double)(clock_now_ns() - begin);
    return known;
}

static int bounce(const struct visit *visit, struct failure *failure) {
    const struct net_link *link = visit->link;
    if (net_send(link->tcp, visit->buffer, visit->size, link->peer, failure) != 0)
        return -1;
    return net_receive(link->tcp, visit->buffer, visit->size, link->peer, failure);
}

static int requests(struct visit *visit, struct failure *failure) {
    for (uint64_t i = 0; i < ROUND_TRIPS; i++) /* finds cold caches, and lets the stream come up */
        if (bounce(visit, failure) != 0)
            return -1;
    const uint64_t begin = clock_now_ns();
    for (uint64_t i = 0; i < visit->iterations; i++) {
        const uint64_t due_ns = begin + i * PERIOD_NS;
        while (clock_now_ns() < due_ns)
            continue;
        if (bounce(visit, failure) != 0)
            return -1;
        visit->times_ns[i] = clock_now_ns() - due_ns;
        visit->total_ns += visit->times_ns[i];
    }
    visit->timed = visit->iterations;
    visit->lasted_ns = clock_now_ns() - begin;
    return 0;
}

static int initiate(struct visit *visit, struct failure *failure) {
    const struct net_link *link = visit->link;
    struct endpoint there;
    struct load *load = load_new(failure);
    if (load == NULL)
        return -1;
    int status = connections_hear(link, &there, failure);
    if (status == 0)
        status = (load->fd = connections_open(link, &there, failure)) < 0 ? -1 : 0;
    const double full = status == 0 ? capacity(load, link, failure) : -1;
    load->bytes_per_ns = full * (double)visit->parameter / 100;
    if (full < 0)
        status = -1;
    if (status == 0 && visit->parameter > 0)
        status = load_start(load, flow, failure);
    if (status == 0)
        status = requests(visit, failure);
    return load_end(load, status, link->peer, failure);
}

static int respond(struct visit *visit, struct failure *failure) {
    const struct net_link *link = visit->link;
    struct load *load = load_new(failure);
    if (load == NULL)
        return -1;
    const int listening = connections_listen(link, failure);
    int status = listening < 0 ? -1 : 0;
    if (status == 0)
        status = (load->fd = connections_accept(link, listening, failure)) < 0 ? -1 : 0;
    if (listening >= 0)
        close(listening);
    if (status == 0)
        status = load_start(load, drain, failure);
    for (uint64_t i = 0; i < visit->iterations + ROUND_TRIPS && status == 0; i++)
        if (net_receive(link->tcp, visit->buffer, visit->size, link->peer, failure) != 0 ||
            net_send(link->tcp, visit->buffer, visit->size, link->peer, failure) != 0)
            status = -1;
    if (status != 0 && load->fd >= 0)
        shutdown(load->fd, SHUT_RDWR);
    return load_end(load, status, link->peer, failure);
}

static const struct operation OPERATION = {
    .name = "tcp_loaded",
    .link = LINK_NET,
    .pattern = "request and response under load",
    .quantity = "round trip from when it was due",
    .divisor = 1,
    .timing = TIMING_ITERATION,
    .echoes = true,
    .min_size = 1,
    .max_size = 64 << 10,
    .visit_scale = VISIT_SCALE,
    .parameter = {.name = "percent of what the way carries",
                  .usual = LOAD_USUAL,
                  .low = 0,
                  .high = LOAD_MOST},
    .summary = "Requests due at fixed times over TCP, while a stream takes so much of what the way carries",
    .initiate = initiate,
    .respond = respond,
};
WULF_OPERATION(OPERATION)
