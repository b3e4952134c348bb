/* The connection between client and server: one TCP connection for commands and for the messages of TCP
 * operations, and for datagrams a pair of connected UDP sockets at the same ports. */
#ifndef WULF_NET_LINK_H
#define WULF_NET_LINK_H

#include <stdint.h>

#include "core/failure.h"
#include "core/node.h"
#include "probe/arguments.h"
#include "probe/command.h"
#include "probe/net/token.h"
#include "probe/operation.h"

struct net_link {
    int tcp, udp; /* udp is -1 where no datagrams are wanted */
    uint32_t tag; /* of this launch's datagrams */
    uint64_t datagram_timeout_ns;
    uint16_t first_port;        /* source port of the first of many flows; 0: those that are usual */
    char peer[NODE_HOST_BYTES]; /* its name in errors */
};

/* What client and server agree on. */
struct agreement {
    const struct operation *operation;
    uint64_t parameter;
    size_t max_size;
    unsigned peer_timeout_s;
};

/* Commands to and from the other side. */
struct channel net_channel(struct net_link *link);

void net_close(struct net_link *link);

/* Client: connect, show the token, agree, open the way for datagrams; `server` receives where it runs. */
int net_join(const struct arguments *arguments, const char token[TOKEN_MAX], struct net_link *link,
             struct node *server, struct failure *failure);

/* Server: wait `timeout_s` for the client with the right token. Others are turned away, and keep nobody
 * waiting. */
int net_accept(const char token[TOKEN_MAX], int tcp, int udp, unsigned timeout_s, struct net_link *link,
               struct agreement *agreement, struct failure *failure);

#endif
