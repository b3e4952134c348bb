#include "probe/net/trace.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/errqueue.h>
#include <netdb.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/lines.h"
#include "core/number.h"
#include "core/options.h"

enum { FLOWS_MOST = 256, HOPS_MOST = 16, SILENT_MOST = 2, PAYLOAD_BYTES = 12, PORT_MOST = 65535 };

/* A flow, and what is known of its way. */
struct flow {
    uint16_t from, to;
    int fd;
    bool reached;
    char hops[HOPS_MOST][INET6_ADDRSTRLEN]; /* empty where a switch has said nothing */
};

struct trace {
    struct sockaddr_storage own, there;
    socklen_t length;
    bool tcp;
    uint64_t hops, tries, wait_us;
    struct flow each[FLOWS_MOST];
    size_t count;
};

enum heard { HEARD_NOTHING, HEARD_SWITCH, HEARD_PEER };

static void set_port(struct sockaddr_storage *address, uint16_t port) {
    if (address->ss_family == AF_INET6)
        ((struct sockaddr_in6 *)(void *)address)->sin6_port = htons(port);
    else
        ((struct sockaddr_in *)(void *)address)->sin_port = htons(port);
}

/* A socket of the flow's ports whose packets live for so many switches; -1 with errno. */
static int open_flow(const struct trace *trace, const struct flow *flow, int ttl) {
    const bool six = trace->there.ss_family == AF_INET6;
    const int yes = 1;
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    struct sockaddr_storage own = trace->own;
    const int type = (trace->tcp ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC | SOCK_NONBLOCK;
    const int fd = socket(trace->there.ss_family, type, 0);
    if (fd < 0)
        return -1;
    set_port(&own, flow->from);
    /* Flows may be from one port to many. */
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
        (!trace->tcp || setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0) &&
        setsockopt(fd, six ? IPPROTO_IPV6 : IPPROTO_IP, six ? IPV6_RECVERR : IP_RECVERR, &yes, sizeof yes) ==
            0 &&
        setsockopt(fd, six ? IPPROTO_IPV6 : IPPROTO_IP, six ? IPV6_UNICAST_HOPS : IP_TTL, &ttl, sizeof ttl) ==
            0 &&
        bind(fd, (const struct sockaddr *)&own, trace->length) == 0)
        return fd;
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* Send a packet of a flow on its way. 0, or -1 with errno. */
static int set_off(const struct trace *trace, struct flow *flow, int ttl) {
    static const unsigned char payload[PAYLOAD_BYTES];
    struct sockaddr_storage there = trace->there;
    set_port(&there, flow->to);
    flow->fd = open_flow(trace, flow, ttl);
    if (flow->fd < 0)
        return -1;
    if (connect(flow->fd, (const struct sockaddr *)&there, trace->length) != 0 && errno != EINPROGRESS)
        return errno == ECONNREFUSED ? 0 : -1;
    if (!trace->tcp && send(flow->fd, payload, sizeof payload, 0) < 0 && errno != ECONNREFUSED)
        return -1;
    return 0;
}

/* What a message about a packet says. */
static enum heard judge(const struct sock_extended_err *error, char *hop) {
    const bool six = error->ee_origin == SO_EE_ORIGIN_ICMP6;
    if (error->ee_origin != SO_EE_ORIGIN_ICMP && !six)
        return HEARD_NOTHING;
    if (error->ee_type == (six ? ICMP6_DST_UNREACH : ICMP_DEST_UNREACH))
        return HEARD_PEER;
    if (error->ee_type != (six ? ICMP6_TIME_EXCEEDED : ICMP_TIME_EXCEEDED))
        return HEARD_NOTHING;
    const struct sockaddr *from = SO_EE_OFFENDER(error);
    const void *address = from->sa_family == AF_INET6
                              ? (const void *)&((const struct sockaddr_in6 *)(const void *)from)->sin6_addr
                              : (const void *)&((const struct sockaddr_in *)(const void *)from)->sin_addr;
    if (from->sa_family == AF_UNSPEC || inet_ntop(from->sa_family, address, hop, INET6_ADDRSTRLEN) == NULL)
        return HEARD_NOTHING;
    return HEARD_SWITCH;
}

/* The next message about a flow's packets. */
static enum heard read_message(int fd, char *hop) {
    unsigned char bytes[512];
    union {
        unsigned char bytes[512];
        struct cmsghdr aligned;
    } control;
    struct iovec where = {.iov_base = bytes, .iov_len = sizeof bytes};
    struct msghdr message = {
        .msg_iov = &where, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    if (recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
        return HEARD_NOTHING;
    for (struct cmsghdr *one = CMSG_FIRSTHDR(&message); one != NULL; one = CMSG_NXTHDR(&message, one))
        if ((one->cmsg_level == IPPROTO_IP && one->cmsg_type == IP_RECVERR) ||
            (one->cmsg_level == IPPROTO_IPV6 && one->cmsg_type == IPV6_RECVERR))
            return judge((const struct sock_extended_err *)(const void *)CMSG_DATA(one), hop);
    return HEARD_NOTHING;
}

/* What has come for a flow whose socket is ready: a switch's word, or the peer itself. */
static enum heard hear(const struct trace *trace, const struct flow *flow, short events, char *hop) {
    int error = 0;
    socklen_t length = sizeof error;
    const enum heard heard = read_message(flow->fd, hop);
    if (heard != HEARD_NOTHING)
        return heard;
    if (getsockopt(flow->fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0)
        return HEARD_NOTHING;
    /* Its kernel refuses the connection, or has taken it; a datagram was answered. */
    if (error == ECONNREFUSED || (trace->tcp && error == 0 && (events & POLLOUT) != 0) ||
        (!trace->tcp && (events & POLLIN) != 0))
        return HEARD_PEER;
    return HEARD_NOTHING;
}

/* Collect what comes for the flows that were set off, until all have been answered or the time is over. */
static void collect(struct trace *trace, int ttl) {
    struct pollfd ready[FLOWS_MOST];
    const uint64_t deadline_ns = clock_now_ns() + trace->wait_us * 1000U;
    const short events = trace->tcp ? POLLOUT : POLLIN;
    size_t open = 0;
    for (size_t i = 0; i < trace->count; i++) {
        ready[i] = (struct pollfd){.fd = trace->each[i].fd, .events = events};
        open += ready[i].fd >= 0;
    }
    while (open > 0 && clock_now_ns() < deadline_ns) {
        const uint64_t left_ms = (deadline_ns - clock_now_ns()) / 1000000U + 1;
        if (poll(ready, trace->count, (int)left_ms) < 0 && errno != EINTR)
            return;
        for (size_t i = 0; i < trace->count; i++) {
            struct flow *flow = &trace->each[i];
            if (ready[i].fd < 0 || ready[i].revents == 0)
                continue;
            const enum heard heard = hear(trace, flow, ready[i].revents, flow->hops[ttl - 1]);
            flow->reached = heard == HEARD_PEER;
            if (heard == HEARD_NOTHING && (ready[i].revents & (POLLERR | POLLHUP)) == 0)
                continue;
            ready[i].fd = -1;
            open--;
        }
    }
}

/* Ask the switches at one distance; how many flows have heard from one. 0, or -1 with `failure`. */
static int ask_at(struct trace *trace, int ttl, size_t *heard, struct failure *failure) {
    for (uint64_t attempt = 0; attempt < trace->tries; attempt++) {
        for (size_t i = 0; i < trace->count; i++) {
            struct flow *flow = &trace->each[i];
            flow->fd = -1;
            if (flow->reached || flow->hops[ttl - 1][0] != '\0')
                continue;
            if (set_off(trace, flow, ttl) != 0 && errno != EADDRINUSE && errno != EADDRNOTAVAIL)
                return failure_set(failure, "system", "", "a packet from port %u: %s", flow->from,
                                   strerror(errno));
        }
        collect(trace, ttl);
        for (size_t i = 0; i < trace->count; i++)
            if (trace->each[i].fd >= 0)
                close(trace->each[i].fd);
    }
    *heard = 0;
    for (size_t i = 0; i < trace->count; i++)
        *heard += trace->each[i].hops[ttl - 1][0] != '\0';
    return 0;
}

static int report(const struct trace *trace, size_t far) {
    for (size_t i = 0; i < trace->count; i++) {
        const struct flow *flow = &trace->each[i];
        struct record record = {0};
        record_begin(&record, "trace");
        record_pair_string(&record, "protocol", trace->tcp ? "tcp" : "udp");
        record_pair_unsigned(&record, "from_port", flow->from);
        record_pair_unsigned(&record, "to_port", flow->to);
        record_key(&record, "hops");
        record_open(&record, '[');
        size_t last = far;
        while (last > 0 && flow->hops[last - 1][0] == '\0')
            last--;
        for (size_t hop = 0; hop < last; hop++) {
            if (flow->hops[hop][0] == '\0')
                record_null(&record);
            else
                record_string(&record, flow->hops[hop]);
        }
        record_close(&record, ']');
        record_pair_bool(&record, "reached", flow->reached);
        if (line_write(&record, STDOUT_FILENO) != 0)
            return -1;
    }
    return 0;
}

static int run(struct trace *trace, struct failure *failure) {
    const uint64_t begin_ns = clock_now_ns();
    size_t far = 0;
    for (size_t silent = 0; far < trace->hops && silent < SILENT_MOST; far++) {
        size_t heard = 0;
        if (ask_at(trace, (int)far + 1, &heard, failure) != 0)
            return -1;
        silent = heard == 0 ? silent + 1 : 0;
        size_t under_way = 0;
        for (size_t i = 0; i < trace->count; i++)
            under_way += !trace->each[i].reached;
        if (under_way == 0) {
            far++;
            break;
        }
    }
    if (report(trace, far) == 0 && line_end((double)(clock_now_ns() - begin_ns) / 1e9) == 0)
        return 0;
    return failure_set(failure, "system", "", "cannot write to standard output: %s", strerror(errno));
}

/* A number up to the first of `ends`; -1 where there is none. */
static long read_port(const char **text, const char *ends) {
    uint64_t number;
    const size_t length = strcspn(*text, ends);
    if (number_parse(*text, length, &number) != 0 || number < 1 || number > PORT_MOST)
        return -1;
    *text += length;
    return (long)number;
}

/* Read FROM:TO,FROM:TO… 0, or -1 where it is not written so. */
static int read_flows(struct trace *trace, const char *text) {
    for (;;) {
        const long from = read_port(&text, ":");
        if (from < 0 || *text++ != ':')
            return -1;
        const long to = read_port(&text, ",");
        if (to < 0 || trace->count == FLOWS_MOST)
            return -1;
        trace->each[trace->count++] = (struct flow){.from = (uint16_t)from, .to = (uint16_t)to, .fd = -1};
        if (*text == '\0')
            return 0;
        text++;
    }
}

static int read_address(const char *text, struct sockaddr_storage *address, socklen_t *length) {
    const struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICHOST};
    struct addrinfo *found = NULL;
    if (text == NULL || getaddrinfo(text, NULL, &hints, &found) != 0)
        return -1;
    memcpy(address, found->ai_addr, found->ai_addrlen);
    *length = found->ai_addrlen;
    freeaddrinfo(found);
    return 0;
}

static int complain(const char *what) {
    fprintf(stderr, "wulf-probe-net: %s\n", what);
    return USAGE_EXIT;
}

int trace_main(int argc, char **argv) {
    static struct trace trace = {.hops = 8, .tries = 5, .wait_us = 50000};
    const char *own = NULL;
    const char *there = NULL;
    const char *flows = NULL;
    socklen_t own_length = 0;
    char message[128];
    const struct option options[] = {
        {.name = "--bind", .help = "address that packets are from", .text = &own},
        {.name = "--to", .help = "address that they go to", .text = &there},
        {.name = "--flows", .help = "FROM:TO,FROM:TO...: their ports", .text = &flows},
        {.name = "--tcp", .help = "connections, not datagrams", .flag = &trace.tcp},
        OPTION_NUMBER("--hops", &trace.hops, 1, HOPS_MOST, "look so far (8)"),
        OPTION_NUMBER("--tries", &trace.tries, 1, 10, "packets of a flow at each distance (5)"),
        OPTION_NUMBER("--wait-us", &trace.wait_us, 1000, 10000000, "wait for answers [us] (50000)"),
    };
    const size_t count = sizeof options / sizeof options[0];
    switch (options_read(options, count, argc, argv, message, sizeof message)) {
    case OPTIONS_RUN:
        break;
    case OPTIONS_WRONG:
        return complain(message);
    default:
        options_help(options, count, "wulf-probe-net " TRACE_WORD, "says which way flows take");
        return 0;
    }
    if (read_address(own, &trace.own, &own_length) != 0 ||
        read_address(there, &trace.there, &trace.length) != 0 || own_length != trace.length)
        return complain("--bind and --to: give two addresses of one kind");
    if (flows == NULL || read_flows(&trace, flows) != 0)
        return complain("--flows: give FROM:TO,FROM:TO..., at most 256 pairs of ports");
    struct failure failure = {0};
    if (run(&trace, &failure) == 0)
        return 0;
    line_failure(&failure, STDOUT_FILENO);
    return FAILURE_EXIT;
}
