/* Sockets: whole messages, bounded waits, and errors in words. */
#ifndef WULF_NET_SOCKET_H
#define WULF_NET_SOCKET_H

#include <netdb.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "core/failure.h"

/* Addresses of "ADDRESS:PORT" or "[ADDRESS]:PORT", to be freed by freeaddrinfo. 0, or -1 with `failure`. */
int net_resolve(const char *endpoint, struct addrinfo **found, struct failure *failure);

/* Connect to the first address that answers, within `timeout_s`; the socket, or -1 with `failure`. */
int net_connect(const struct addrinfo *addresses, unsigned timeout_s, const char *peer,
                struct failure *failure);

/* Listen for TCP, and be bound for UDP at the same port. 0, or -1 with `failure`. */
int net_listen(const char *address, uint16_t port, int *tcp, int *udp, uint16_t *bound,
               struct failure *failure);

/* The port of an address. */
uint16_t net_port_of(const struct sockaddr_storage *address);

/* Send at once what is written (no Nagle). */
void net_no_delay(int fd);

/* Move exactly `length` bytes. 0, or -1 with `failure`. Every part of it counts as a sign of life. */
int net_send(int fd, const unsigned char *bytes, size_t length, const char *peer, struct failure *failure);
int net_receive(int fd, unsigned char *bytes, size_t length, const char *peer, struct failure *failure);

/* Like net_receive, until the clock says `deadline_ns`. */
int net_receive_until(int fd, unsigned char *bytes, size_t length, uint64_t deadline_ns, const char *peer,
                      struct failure *failure);

/* Room for what comes and goes all at once, as much as the system grants: a buffer of ours is not what is
 * measured. */
void net_widen(int fd);

/* Wait for input until then: 1 there is some, 0 the time is over, -1 with errno. */
int net_wait(int fd, uint64_t deadline_ns);

/* Whether the peer has closed the connection or broken it; consumes nothing. */
int net_is_closed(int fd);

/* Note the system's error: `peer_lost` where the connection broke, else `system`. Returns -1. */
int net_failed(int error, const char *peer, struct failure *failure);

#endif
