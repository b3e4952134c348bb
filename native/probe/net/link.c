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

void net_close(struct net_link *link) {
    if (link->tcp >= 0)
        close(link->tcp);
    if (link->udp >= 0)
        close(link->udp);
    link->tcp = link->udp = -1;
}
