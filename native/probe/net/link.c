#include "probe/net/link.h"

#include <unistd.h>

#include "probe/net/socket.h"

static int send_command(void *context, const unsigned char *bytes, size_t length, struct failure *failure) {
    const struct net_link *link = context;
    return net_send(link->tcp, bytes, length, link->peer, failure);
}

static int receive_command(void *context, unsigned char *bytes, size_t length, struct failure *failure) {
    const struct net_link *link = context;
    return net_receive(link->tcp, bytes, length, link->peer, failure);
}

struct channel net_channel(struct net_link *link) {
    return (struct channel){
        .link = link, .peer = link->peer, .peers = 1, .send = send_command, .receive = receive_command};
}

static int send_to_all(void *context, const unsigned char *bytes, size_t length, struct failure *failure) {
    struct net_links *links = context;
    for (size_t i = 0; i < links->count; i++)
        if (send_command(&links->each[i], bytes, length, failure) != 0)
            return -1;
    return 0;
}

static int receive_from_all(void *context, unsigned char *bytes, size_t length, struct failure *failure) {
    struct net_links *links = context;
    for (size_t i = 0; i < links->count; i++)
        if (receive_command(&links->each[i], bytes + i * length, length, failure) != 0)
            return -1;
    return 0;
}

struct channel net_channel_of_all(struct net_links *links, const char *peer) {
    return (struct channel){
        .link = links, .peer = peer, .peers = links->count, .send = send_to_all, .receive = receive_from_all};
}

void net_close_all(struct net_links *links) {
    for (size_t i = 0; i < links->count; i++)
        net_close(&links->each[i]);
}

void net_close(struct net_link *link) {
    if (link->tcp >= 0)
        close(link->tcp);
    if (link->udp >= 0)
        close(link->udp);
    link->tcp = link->udp = -1;
}
