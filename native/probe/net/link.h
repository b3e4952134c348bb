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

/* All servers of a client: one, or of an operation of a group several. */
enum { LINKS_MOST = 64 };
struct net_links {
    struct net_link each[LINKS_MOST];
    size_t count;
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

/* Commands to all servers, whose links a visit of a group gets as `struct net_links`. */
struct channel net_channel_of_all(struct net_links *links, const char *peer);

void net_close(struct net_link *link);
void net_close_all(struct net_links *links);

/* Client: connect to all servers, show them the token, agree, open the way for datagrams; `servers` has room
 * for LINKS_MOST and receives where they run. */
int net_join_all(const struct arguments *arguments, const char token[TOKEN_MAX], struct net_links *links,
                 struct node *servers, struct failure *failure);

/* Server: wait `timeout_s` for the client with the right token. Others are turned away, and keep nobody
 * waiting. */
int net_accept(const char token[TOKEN_MAX], int tcp, int udp, unsigned timeout_s, struct net_link *link,
               struct agreement *agreement, struct failure *failure);

#endif
