#include "probe/net/connections.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/watchdog.h"
#include "probe/command.h"
#include "probe/net/socket.h"

enum { PORT_BYTES = 4 };
static const uint64_t LOOK_NS = 250000000;

static void set_port(struct sockaddr_storage *address, uint16_t port) {
    if (address->ss_family == AF_INET6)
        ((struct sockaddr_in6 *)(void *)address)->sin6_port = htons(port);
    else
        ((struct sockaddr_in *)(void *)address)->sin_port = htons(port);
}

static int listen_at(struct sockaddr_storage *address, socklen_t length) {
    set_port(address, 0);
    const int fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && bind(fd, (struct sockaddr *)address, length) == 0 && listen(fd, SOMAXCONN) == 0 &&
        getsockname(fd, (struct sockaddr *)address, &length) == 0)
        return fd;
    const int error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    return -1;
}

int connections_listen(const struct net_link *link, struct failure *failure) {
    struct sockaddr_storage address = {0};
    socklen_t length = sizeof address;
    unsigned char port[PORT_BYTES];
    if (getsockname(link->tcp, (struct sockaddr *)&address, &length) != 0)
        return net_failed(errno, link->peer, failure);
    const int fd = listen_at(&address, length);
    if (fd < 0)
        return failure_set(failure, "system", "", "cannot listen for more connections: %s", strerror(errno));
    put_u32(port, net_port_of(&address));
    if (net_send(link->tcp, port, sizeof port, link->peer, failure) == 0)
        return fd;
    close(fd);
    return -1;
}

static int is_peer(int link, const struct sockaddr_storage *from) {
    struct sockaddr_storage peer = {0};
    socklen_t length = sizeof peer;
    if (getpeername(link, (struct sockaddr *)&peer, &length) != 0 || peer.ss_family != from->ss_family)
        return 0;
    set_port(&peer, net_port_of(from));
    if (peer.ss_family == AF_INET6)
        return memcmp(&((const struct sockaddr_in6 *)(const void *)&peer)->sin6_addr,
                      &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr,
                      sizeof(struct in6_addr)) == 0;
    return ((const struct sockaddr_in *)(const void *)&peer)->sin_addr.s_addr ==
           ((const struct sockaddr_in *)(const void *)from)->sin_addr.s_addr;
}

int connections_accept(const struct net_link *link, int listening, struct failure *failure) {
    for (;;) {
        struct sockaddr_storage from = {0};
        socklen_t length = sizeof from;
        const int there = net_wait(listening, clock_now_ns() + LOOK_NS);
        if (there == 0 && net_is_closed(link->tcp))
            return net_failed(ECONNRESET, link->peer, failure);
        if (there <= 0)
            continue;
        const int fd = accept4(listening, (struct sockaddr *)&from, &length, SOCK_CLOEXEC);
        if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
            continue;
        if (fd < 0)
            return net_failed(errno, link->peer, failure);
        watchdog_beat();
        if (is_peer(link->tcp, &from))
            return fd;
        close(fd);
    }
}

int connections_hear(const struct net_link *link, struct endpoint *there, struct failure *failure) {
    unsigned char port[PORT_BYTES];
    there->length = sizeof there->address;
    if (net_receive(link->tcp, port, sizeof port, link->peer, failure) != 0)
        return -1;
    if (getpeername(link->tcp, (struct sockaddr *)&there->address, &there->length) != 0)
        return net_failed(errno, link->peer, failure);
    set_port(&there->address, (uint16_t)get_u32(port));
    return 0;
}

int connections_open(const struct net_link *link, const struct endpoint *there, struct failure *failure) {
    const int fd = socket(there->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return net_failed(errno, link->peer, failure);
    if (connect(fd, (const struct sockaddr *)&there->address, there->length) == 0) {
        watchdog_beat();
        return fd;
    }
    net_failed(errno, link->peer, failure);
    close(fd);
    return -1;
}

void connections_reset(int fd) {
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(fd);
}
