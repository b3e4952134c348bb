/* The server's way to its one client. Whatever comes over the wire is checked before it is used. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "core/clock.h"
#include "probe/net/datagram.h"
#include "probe/net/handshake.h"
#include "probe/net/link.h"
#include "probe/net/socket.h"

static const uint64_t SECOND_NS = 1000000000;
static const uint64_t REQUEST_WITHIN_NS = 2000000000;
enum { LONGEST_PEER_TIMEOUT_S = 3600, VISITORS_MAX = 64 };

/* The code of the reply: empty when we agree. */
static const char *judge(const struct request *request, const char token[TOKEN_MAX],
                         struct agreement *agreement) {
    if (!token_same(token, request->token))
        return "token";
    const struct operation *operation = operation_find(request->operation);
    if (operation == NULL || operation->link != LINK_NET)
        return "operation";
    if (request->max_size < operation->min_size || request->max_size > operation->max_size)
        return "size";
    if (operation_parameter(request->operation, &agreement->parameter) != 0)
        return "operation";
    agreement->operation = operation;
    agreement->max_size = (size_t)request->max_size;
    agreement->peer_timeout_s = request->peer_timeout_s;
    if (agreement->peer_timeout_s < 1 || agreement->peer_timeout_s > LONGEST_PEER_TIMEOUT_S)
        agreement->peer_timeout_s = LONGEST_PEER_TIMEOUT_S;
    return "";
}

/* Answer a whole request: whether it is our client's. */
static bool answer(const unsigned char bytes[REQUEST_BYTES], const char token[TOKEN_MAX],
                   struct net_link *link, struct agreement *agreement) {
    unsigned char said[REPLY_BYTES];
    struct request request;
    struct reply reply = {0};
    struct failure ignored = {0}; /* a stranger's failure is not ours */
    if (request_decode(&request, bytes) != 0)
        return false;
    const char *code = judge(&request, token, agreement);
    snprintf(reply.code, sizeof reply.code, "%s", code);
    if (code[0] == '\0')
        node_describe(&reply.server);
    reply_encode(&reply, said);
    link->tag = request.tag;
    return net_send(link->tcp, said, REPLY_BYTES, link->peer, &ignored) == 0 && code[0] == '\0';
}

static bool same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b) {
    if (a->ss_family != b->ss_family)
        return false;
    if (a->ss_family == AF_INET6)
        return memcmp(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr,
                      &((const struct sockaddr_in6 *)(const void *)b)->sin6_addr, 16) == 0;
    return ((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr ==
           ((const struct sockaddr_in *)(const void *)b)->sin_addr.s_addr;
}

/* Whether a datagram that is there is our client's knock; then the socket is connected to it. */
static bool is_knock(const struct net_link *link, const struct sockaddr_storage *client) {
    unsigned char datagram[DATAGRAM_HEADER_BYTES + 1];
    struct sockaddr_storage from = {0};
    socklen_t length = sizeof from;
    const ssize_t n =
        recvfrom(link->udp, datagram, sizeof datagram, MSG_DONTWAIT, (struct sockaddr *)&from, &length);
    return n == DATAGRAM_HEADER_BYTES && same_host(&from, client) && datagram_tag(datagram) == link->tag &&
           datagram_iteration(datagram) == DATAGRAM_OPEN &&
           connect(link->udp, (struct sockaddr *)&from, length) == 0;
}

/* Wait for the first datagram, which tells the client's port. */
static int open_datagrams(struct net_link *link, unsigned timeout_s, struct failure *failure) {
    struct sockaddr_storage client = {0};
    socklen_t length = sizeof client;
    const struct timeval often = {.tv_sec = 1};
    const unsigned char heard = 1;
    if (getpeername(link->tcp, (struct sockaddr *)&client, &length) != 0 ||
        setsockopt(link->udp, SOL_SOCKET, SO_RCVTIMEO, &often, sizeof often) != 0)
        return net_failed(errno, link->peer, failure);
    const uint64_t deadline_ns = clock_now_ns() + timeout_s * SECOND_NS;
    while (clock_now_ns() < deadline_ns) {
        if (net_wait(link->udp, clock_now_ns() + SECOND_NS) > 0) {
            if (is_knock(link, &client))
                return net_send(link->tcp, &heard, 1, link->peer, failure);
        } else if (net_is_closed(link->tcp))
            return net_failed(ECONNRESET, link->peer, failure);
    }
    return failure_set(failure, "peer_lost", link->peer, "no datagram has come from %s", link->peer);
}

static void name_visitor(int fd, char *name, size_t capacity) {
    struct sockaddr_storage address = {0};
    socklen_t length = sizeof address;
    char host[128] = "";
    if (getpeername(fd, (struct sockaddr *)&address, &length) != 0 ||
        getnameinfo((struct sockaddr *)&address, length, host, sizeof host, NULL, 0, NI_NUMERICHOST) != 0)
        snprintf(host, sizeof host, "the client");
    snprintf(name, capacity, "%s", host);
}

/* Somebody who has connected and has not said yet who it is. */
struct visitor {
    int fd;
    size_t heard;
    uint64_t deadline_ns;
    unsigned char bytes[REQUEST_BYTES];
};

/* Those who are being heard, the first to come first. */
struct hall {
    struct visitor visitors[VISITORS_MAX];
    size_t count;
};

enum heard { HEARD_PART, HEARD_ALL, HEARD_ENOUGH };

static void dismiss(struct hall *hall, size_t i) {
    if (hall->visitors[i].fd >= 0)
        close(hall->visitors[i].fd);
    hall->count--;
    memmove(&hall->visitors[i], &hall->visitors[i + 1], (hall->count - i) * sizeof hall->visitors[0]);
}

/* Take what has come from a visitor; HEARD_ENOUGH when it has gone or its time is over. */
static enum heard hear(struct visitor *visitor) {
    const size_t missing = REQUEST_BYTES - visitor->heard;
    const ssize_t n = recv(visitor->fd, visitor->bytes + visitor->heard, missing, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        return HEARD_ENOUGH;
    visitor->heard += n > 0 ? (size_t)n : 0;
    if (visitor->heard == REQUEST_BYTES)
        return HEARD_ALL;
    return clock_now_ns() < visitor->deadline_ns ? HEARD_PART : HEARD_ENOUGH;
}

/* Wait until a visitor says something, goes or has had its time; whether somebody new is there. */
static bool await(const struct hall *hall, int tcp, uint64_t deadline_ns) {
    struct pollfd ready[VISITORS_MAX + 1] = {{.fd = tcp, .events = POLLIN}};
    for (size_t i = 0; i < hall->count; i++)
        ready[i + 1] = (struct pollfd){.fd = hall->visitors[i].fd, .events = POLLIN};
    if (hall->count > 0 && hall->visitors[0].deadline_ns < deadline_ns)
        deadline_ns = hall->visitors[0].deadline_ns;
    const uint64_t now = clock_now_ns();
    const int wait_ms = deadline_ns > now ? (int)((deadline_ns - now) / 1000000 + 1) : 0;
    return poll(ready, hall->count + 1, wait_ms) > 0 && ready[0].revents != 0;
}

/* Let the next visitor in; the one who has waited longest makes room. */
static void admit(struct hall *hall, int tcp) {
    const int fd = accept4(tcp, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    net_no_delay(fd);
    if (hall->count == VISITORS_MAX)
        dismiss(hall, 0);
    hall->visitors[hall->count++] =
        (struct visitor){.fd = fd, .deadline_ns = clock_now_ns() + REQUEST_WITHIN_NS};
}

static bool serve_one(struct hall *hall, const char token[TOKEN_MAX], struct net_link *link,
                      struct agreement *agreement) {
    size_t i = 0;
    while (i < hall->count) {
        struct visitor *visitor = &hall->visitors[i];
        switch (hear(visitor)) {
        case HEARD_ALL:
            *link = (struct net_link){.tcp = visitor->fd, .udp = -1};
            name_visitor(link->tcp, link->peer, sizeof link->peer);
            if (answer(visitor->bytes, token, link, agreement)) {
                visitor->fd = -1;
                return true;
            }
            dismiss(hall, i);
            break;
        case HEARD_ENOUGH:
            dismiss(hall, i);
            break;
        case HEARD_PART:
            i++;
            break;
        }
    }
    *link = (struct net_link){.tcp = -1, .udp = -1};
    return false;
}

/* Hear all visitors side by side, until one of them is our client or the time is over. */
static bool find_client(const char token[TOKEN_MAX], int tcp, uint64_t deadline_ns, struct net_link *link,
                        struct agreement *agreement) {
    struct hall hall = {0};
    bool found = false;
    while (!found && clock_now_ns() < deadline_ns) {
        if (await(&hall, tcp, deadline_ns))
            admit(&hall, tcp);
        found = serve_one(&hall, token, link, agreement);
    }
    while (hall.count > 0)
        dismiss(&hall, 0);
    return found;
}

int net_accept(const char token[TOKEN_MAX], int tcp, int udp, unsigned timeout_s, struct net_link *link,
               struct agreement *agreement, struct failure *failure) {
    /* One that has gone again is not waited for. */
    if (fcntl(tcp, F_SETFL, O_NONBLOCK) != 0)
        return net_failed(errno, "", failure);
    const uint64_t deadline_ns = clock_now_ns() + timeout_s * SECOND_NS;
    if (!find_client(token, tcp, deadline_ns, link, agreement))
        return failure_set(failure, "peer_lost", "", "no client with the right token has come for %u s",
                           timeout_s);
    close(tcp); /* exactly one client */
    link->udp = udp;
    return agreement->operation->lossy ? open_datagrams(link, agreement->peer_timeout_s, failure) : 0;
}
