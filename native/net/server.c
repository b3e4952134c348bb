/* The server's way to its one client. Whatever comes over the wire is checked before it is used. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "core/clock.h"
#include "net/datagram.h"
#include "net/handshake.h"
#include "net/link.h"
#include "net/socket.h"

static const uint64_t SECOND_NS = 1000000000;
static const uint64_t REQUEST_WITHIN_NS = 2000000000;
enum { LONGEST_PEER_TIMEOUT_S = 3600 };

/* Takes the same time wherever the first difference is. */
static bool same_token(const char own[TOKEN_MAX], const char shown[TOKEN_MAX]) {
    unsigned char differs = 0;
    for (size_t i = 0; i < TOKEN_MAX; i++)
        differs |= (unsigned char)(own[i] ^ shown[i]);
    return differs == 0;
}

/* The code of the reply: empty when we agree. */
static const char *judge(const struct request *request, const char *token, struct agreement *agreement) {
    char own[TOKEN_MAX] = "";
    snprintf(own, sizeof own, "%s", token);
    if (!same_token(own, request->token))
        return "token";
    const struct operation *operation = operation_find(request->operation);
    if (operation == NULL || operation->link != LINK_NET)
        return "operation";
    if (request->max_size < operation->min_size || request->max_size > operation->max_size)
        return "size";
    agreement->operation = operation;
    agreement->max_size = (size_t)request->max_size;
    agreement->peer_timeout_s = request->peer_timeout_s;
    if (agreement->peer_timeout_s < 1 || agreement->peer_timeout_s > LONGEST_PEER_TIMEOUT_S)
        agreement->peer_timeout_s = LONGEST_PEER_TIMEOUT_S;
    return "";
}

/* Hear one visitor: 1 it is our client, 0 it is not. */
static int hear(struct net_link *link, const char *token, struct agreement *agreement) {
    unsigned char bytes[REPLY_BYTES];
    struct request request;
    struct reply reply = {0};
    struct failure ignored = {0}; /* a stranger's failure is not ours */
    if (net_receive_until(link->tcp, bytes, REQUEST_BYTES, clock_now_ns() + REQUEST_WITHIN_NS, link->peer,
                          &ignored) != 0 ||
        request_decode(&request, bytes) != 0)
        return 0;
    const char *code = judge(&request, token, agreement);
    snprintf(reply.code, sizeof reply.code, "%s", code);
    if (code[0] == '\0')
        node_describe(&reply.server);
    reply_encode(&reply, bytes);
    link->tag = request.tag;
    return net_send(link->tcp, bytes, REPLY_BYTES, link->peer, &ignored) == 0 && code[0] == '\0';
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

int net_accept(const char *token, int tcp, int udp, unsigned timeout_s, struct net_link *link,
               struct agreement *agreement, struct failure *failure) {
    const uint64_t deadline_ns = clock_now_ns() + timeout_s * SECOND_NS;
    while (net_wait(tcp, deadline_ns) > 0) {
        *link = (struct net_link){.tcp = accept4(tcp, NULL, NULL, SOCK_CLOEXEC), .udp = -1};
        if (link->tcp < 0)
            continue;
        net_no_delay(link->tcp);
        name_visitor(link->tcp, link->peer, sizeof link->peer);
        if (hear(link, token, agreement) == 1) {
            close(tcp); /* exactly one client */
            link->udp = udp;
            return agreement->operation->lossy ? open_datagrams(link, agreement->peer_timeout_s, failure) : 0;
        }
        net_close(link);
    }
    return failure_set(failure, "peer_lost", "", "no client with the right token has come for %u s",
                       timeout_s);
}
