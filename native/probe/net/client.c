/* The client's way to a server. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/time.h>
#include <unistd.h>

#include "core/clock.h"
#include "probe/net/datagram.h"
#include "probe/net/handshake.h"
#include "probe/net/link.h"
#include "probe/net/socket.h"

static const uint64_t OPEN_EVERY_NS = 50000000;
enum { ENDPOINT_BYTES = 300 };

/* Say in words why the server does not serve. */
static int turned_away(const char *code, const char *peer, struct failure *failure) {
    if (strcmp(code, "token") == 0)
        return failure_set(failure, "token", peer, "%s turns us away: the token is wrong", peer);
    if (strcmp(code, "size") == 0)
        return failure_set(failure, "size", peer, "%s does not accept messages of this size", peer);
    return failure_set(failure, "system", peer, "%s does not know this operation: is it another version?",
                       peer);
}

static int agree(const struct arguments *arguments, const char token[TOKEN_MAX], const struct net_link *link,
                 struct node *server, struct failure *failure) {
    struct request request = {
        .max_size = arguments->sizes[arguments->size_count - 1],
        .peer_timeout_s = (uint32_t)arguments->peer_timeout_s,
        .tag = link->tag,
    };
    struct reply reply;
    unsigned char bytes[REPLY_BYTES];
    memcpy(request.token, token, TOKEN_MAX);
    snprintf(request.operation, sizeof request.operation, "%s", arguments->op);
    request_encode(&request, bytes);
    const uint64_t deadline_ns = clock_now_ns() + arguments->peer_timeout_s * 1000000000U;
    if (net_send(link->tcp, bytes, REQUEST_BYTES, link->peer, failure) != 0 ||
        net_receive_until(link->tcp, bytes, REPLY_BYTES, deadline_ns, link->peer, failure) != 0)
        return -1;
    reply_decode(&reply, bytes);
    if (reply.code[0] != '\0')
        return turned_away(reply.code, link->peer, failure);
    *server = reply.server;
    return 0;
}

static int set_receive_timeout(int fd, uint64_t timeout_ns) {
    const struct timeval timeout = {.tv_sec = (time_t)(timeout_ns / 1000000000U),
                                    .tv_usec = (suseconds_t)(timeout_ns % 1000000000U / 1000)};
    return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
}

/* Knock until the server says over TCP that it has heard us. */
static int knock(const struct net_link *link, uint64_t timeout_ns, struct failure *failure) {
    unsigned char datagram[DATAGRAM_HEADER_BYTES];
    unsigned char heard;
    datagram_mark(datagram, link->tag, DATAGRAM_OPEN);
    const uint64_t deadline_ns = clock_now_ns() + timeout_ns;
    while (clock_now_ns() < deadline_ns) {
        if (send(link->udp, datagram, sizeof datagram, 0) < 0 && errno != ECONNREFUSED && errno != EINTR)
            return net_failed(errno, link->peer, failure);
        if (net_wait(link->tcp, clock_now_ns() + OPEN_EVERY_NS) > 0)
            return net_receive(link->tcp, &heard, 1, link->peer, failure);
    }
    return failure_set(failure, "peer_lost", link->peer,
                       "%s hears no datagram of ours: does a firewall drop UDP at this port?", link->peer);
}

static int open_datagrams(const struct arguments *arguments, struct net_link *link, struct failure *failure) {
    /* To where the TCP connection goes: the server has the same port for both. */
    struct sockaddr_storage server = {0};
    socklen_t length = sizeof server;
    if (getpeername(link->tcp, (struct sockaddr *)&server, &length) != 0)
        return net_failed(errno, link->peer, failure);
    link->udp = socket(server.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (link->udp < 0 || connect(link->udp, (struct sockaddr *)&server, length) != 0 ||
        set_receive_timeout(link->udp, link->datagram_timeout_ns) != 0)
        return net_failed(errno, link->peer, failure);
    return knock(link, arguments->peer_timeout_s * 1000000000U, failure);
}

/* Take one of several that are separated by commas; false where there is none left. */
static bool take_one(const char **list, char *one, size_t capacity) {
    if (**list == '\0')
        return false;
    const size_t length = strcspn(*list, ",");
    snprintf(one, capacity, "%.*s", (int)length, *list);
    *list += length + ((*list)[length] == ',');
    return true;
}

static int join(const struct arguments *arguments, const char *endpoint, const char token[TOKEN_MAX],
                struct net_link *link, struct node *server, struct failure *failure) {
    link->datagram_timeout_ns = arguments->datagram_timeout_us * 1000U;
    link->first_port = (uint16_t)arguments->port;
    struct addrinfo *addresses = NULL;
    if (getrandom(&link->tag, sizeof link->tag, 0) != (ssize_t)sizeof link->tag)
        return failure_set(failure, "system", "", "no random number: %s", strerror(errno));
    if (net_resolve(endpoint, &addresses, failure) != 0)
        return -1;
    link->tcp = net_connect(addresses, (unsigned)arguments->peer_timeout_s, link->peer, failure);
    freeaddrinfo(addresses);
    if (link->tcp < 0)
        return -1;
    net_no_delay(link->tcp);
    if (agree(arguments, token, link, server, failure) != 0)
        return -1;
    return operation_find(arguments->op)->lossy ? open_datagrams(arguments, link, failure) : 0;
}

int net_join_all(const struct arguments *arguments, const char token[TOKEN_MAX], struct net_links *links,
                 struct node *servers, struct failure *failure) {
    const char *endpoints = arguments->connect;
    const char *names = arguments->peer_name != NULL ? arguments->peer_name : arguments->connect;
    char endpoint[ENDPOINT_BYTES];
    links->count = 0;
    while (take_one(&endpoints, endpoint, sizeof endpoint)) {
        if (links->count == LINKS_MOST)
            return failure_set(failure, "ranks", "", "more than %d servers", LINKS_MOST);
        struct net_link *link = &links->each[links->count];
        *link = (struct net_link){.tcp = -1, .udp = -1};
        if (!take_one(&names, link->peer, sizeof link->peer))
            snprintf(link->peer, sizeof link->peer, "%.*s", (int)sizeof link->peer - 1, endpoint);
        if (join(arguments, endpoint, token, link, &servers[links->count++], failure) != 0)
            return -1;
    }
    if (links->count != 1 && !operation_find(arguments->op)->group)
        return failure_set(failure, "ranks", "", "%s takes one server, not %zu", arguments->op, links->count);
    return 0;
}
