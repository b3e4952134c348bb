#include "probe/net/socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/watchdog.h"

enum {
    CHUNK_BYTES = 4 << 20, /* of one system call, so that a slow link shows signs of life */
    PORT_ATTEMPTS = 32,
    WIDE_BYTES = 64 << 20
};

int net_failed(int error, const char *peer, struct failure *failure) {
    switch (error) {
    case ECONNRESET:
    case EPIPE:
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ECONNABORTED:
    case ECONNREFUSED:
        return failure_set(failure, "peer_lost", peer, "the connection to %s broke: %s", peer,
                           strerror(error));
    default:
        return failure_set(failure, "system", peer, "the exchange with %s failed: %s", peer, strerror(error));
    }
}

static int closed(const char *peer, struct failure *failure) {
    return failure_set(failure, "peer_lost", peer, "%s closed the connection", peer);
}

int net_resolve(const char *endpoint, struct addrinfo **found, struct failure *failure) {
    char host[256];
    const char *colon = strrchr(endpoint, ':');
    size_t length = colon == NULL ? 0 : (size_t)(colon - endpoint);
    const char *begin = endpoint;
    if (length > 2 && begin[0] == '[' && begin[length - 1] == ']') {
        begin++;
        length -= 2;
    }
    if (length == 0 || length >= sizeof host || colon[1] == '\0')
        return failure_set(failure, "system", "", "--connect: give ADDRESS:PORT (got '%.100s')", endpoint);
    memcpy(host, begin, length);
    host[length] = '\0';
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    const int error = getaddrinfo(host, colon + 1, &hints, found);
    if (error != 0)
        return failure_set(failure, "system", "", "--connect: '%.100s' is no address: %s", endpoint,
                           gai_strerror(error));
    return 0;
}

/* Wait for a connection that is being made; 0, or the error. */
static int finish_connect(int fd, uint64_t deadline_ns) {
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    for (;;) {
        const uint64_t now = clock_now_ns();
        if (now >= deadline_ns)
            return ETIMEDOUT;
        const int n = poll(&ready, 1, (int)((deadline_ns - now) / 1000000 + 1));
        if (n < 0 && errno != EINTR)
            return errno;
        if (n > 0)
            break;
    }
    int error = 0;
    socklen_t length = sizeof error;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0 ? errno : error;
}

/* The connected socket, or minus the error. */
static int connect_one(const struct addrinfo *address, uint64_t deadline_ns) {
    const int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    int error = connect(fd, address->ai_addr, address->ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS)
        error = finish_connect(fd, deadline_ns);
    if (error == 0 && fcntl(fd, F_SETFL, 0) != 0)
        error = errno;
    if (error == 0)
        return fd;
    close(fd);
    return -error;
}

int net_connect(const struct addrinfo *addresses, unsigned timeout_s, const char *peer,
                struct failure *failure) {
    const uint64_t deadline_ns = clock_now_ns() + (uint64_t)timeout_s * 1000000000U;
    int result = -EADDRNOTAVAIL;
    for (const struct addrinfo *address = addresses; address != NULL; address = address->ai_next) {
        result = connect_one(address, deadline_ns);
        if (result >= 0)
            return result;
    }
    if (result == -ECONNREFUSED)
        return failure_set(failure, "refused", peer, "%s refuses the connection: nobody listens there", peer);
    if (result == -ETIMEDOUT)
        return failure_set(failure, "peer_lost", peer, "%s has not answered for %u s", peer, timeout_s);
    return net_failed(-result, peer, failure);
}

uint16_t net_port_of(const struct sockaddr_storage *address) {
    if (address->ss_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)(const void *)address)->sin6_port);
    return ntohs(((const struct sockaddr_in *)(const void *)address)->sin_port);
}

static int open_bound(const struct addrinfo *address, int type) {
    const int fd = socket(address->ai_family, type | SOCK_CLOEXEC, 0);
    const int on = 1;
    if (fd < 0)
        return -1;
    if ((type != SOCK_STREAM || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0) &&
        bind(fd, address->ai_addr, address->ai_addrlen) == 0)
        return fd;
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
}

static int listen_once(const char *address, uint16_t port, int *tcp, int *udp, uint16_t *bound) {
    char service[8];
    struct addrinfo *found = NULL;
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    snprintf(service, sizeof service, "%u", port);
    if (getaddrinfo(address, service, &hints, &found) != 0) {
        errno = EADDRNOTAVAIL;
        return -1;
    }
    struct sockaddr_storage local = {0};
    socklen_t length = sizeof local;
    *udp = -1;
    *tcp = open_bound(found, SOCK_STREAM);
    if (*tcp >= 0 && listen(*tcp, SOMAXCONN) == 0 &&
        getsockname(*tcp, (struct sockaddr *)&local, &length) == 0) {
        memcpy(found->ai_addr, &local, length);
        *udp = open_bound(found, SOCK_DGRAM);
        *bound = net_port_of(&local);
    }
    const int error = errno;
    freeaddrinfo(found);
    if (*udp >= 0)
        return 0;
    if (*tcp >= 0)
        close(*tcp);
    errno = error;
    return -1;
}

int net_listen(const char *address, uint16_t port, int *tcp, int *udp, uint16_t *bound,
               struct failure *failure) {
    /* A port that is free for TCP may be taken for UDP: then another one is drawn. */
    for (int attempt = 0; attempt < PORT_ATTEMPTS; attempt++) {
        if (listen_once(address, port, tcp, udp, bound) == 0)
            return 0;
        if (port != 0 || errno != EADDRINUSE)
            break;
    }
    return failure_set(failure, "system", "", "cannot listen at %.100s port %u: %s", address, port,
                       strerror(errno));
}

void net_no_delay(int fd) {
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

int net_send(int fd, const unsigned char *bytes, size_t length, const char *peer, struct failure *failure) {
    while (length > 0) {
        const ssize_t n = send(fd, bytes, length < CHUNK_BYTES ? length : CHUNK_BYTES, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return net_failed(errno, peer, failure);
        watchdog_beat();
        bytes += n;
        length -= (size_t)n;
    }
    return 0;
}

int net_receive(int fd, unsigned char *bytes, size_t length, const char *peer, struct failure *failure) {
    while (length > 0) {
        const ssize_t n = recv(fd, bytes, length < CHUNK_BYTES ? length : CHUNK_BYTES, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return net_failed(errno, peer, failure);
        if (n == 0)
            return closed(peer, failure);
        watchdog_beat();
        bytes += n;
        length -= (size_t)n;
    }
    return 0;
}

void net_widen(int fd) {
    const int bytes = WIDE_BYTES;
    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes) != 0)
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes) != 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

int net_wait(int fd, uint64_t deadline_ns) {
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    for (;;) {
        const uint64_t now = clock_now_ns();
        if (now >= deadline_ns)
            return 0;
        const int n = poll(&ready, 1, (int)((deadline_ns - now) / 1000000 + 1));
        if (n > 0)
            return 1;
        if (n < 0 && errno != EINTR)
            return -1;
    }
}

int net_receive_until(int fd, unsigned char *bytes, size_t length, uint64_t deadline_ns, const char *peer,
                      struct failure *failure) {
    while (length > 0) {
        const int there = net_wait(fd, deadline_ns);
        if (there == 0)
            return failure_set(failure, "peer_lost", peer, "%s has connected and says nothing", peer);
        const ssize_t n = there < 0 ? -1 : recv(fd, bytes, length, MSG_DONTWAIT);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n < 0)
            return net_failed(errno, peer, failure);
        if (n == 0)
            return closed(peer, failure);
        bytes += n;
        length -= (size_t)n;
    }
    return 0;
}

int net_is_closed(int fd) {
    unsigned char byte;
    const ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}
