/* Further TCP connections of a visit, beside the one of the link: between the same two addresses. */
#ifndef WULF_NET_CONNECTIONS_H
#define WULF_NET_CONNECTIONS_H

#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>

#include "core/failure.h"
#include "probe/net/link.h"

/* Where the responder of a visit listens. */
struct endpoint {
    struct sockaddr_storage address;
    socklen_t length;
};

/* Responder: listen at the link's own address, at a port that is free, and tell the other side. The socket,
 * or -1 with `failure`. */
int connections_listen(const struct net_link *link, struct failure *failure);

/* Responder: the next connection that comes from the link's peer; others are closed. The socket, or -1. */
int connections_accept(const struct net_link *link, int listening, struct failure *failure);

/* Initiator: hear where the responder listens. 0, or -1 with `failure`. */
int connections_hear(const struct net_link *link, struct endpoint *there, struct failure *failure);

/* Initiator: connect. The socket, or -1 with `failure`. */
int connections_open(const struct net_link *link, const struct endpoint *there, struct failure *failure);

/* Break a connection off, so that its port is free at once: no TIME_WAIT. */
void connections_reset(int fd);

#endif
