/* First message of each side, of fixed length. */
#ifndef WULF_NET_HANDSHAKE_H
#define WULF_NET_HANDSHAKE_H

#include <stddef.h>
#include <stdint.h>

#include "core/node.h"
#include "probe/net/token.h"

enum {
    OPERATION_BYTES = 32,
    CODE_BYTES = 16,
    REQUEST_BYTES = 8 + TOKEN_MAX + OPERATION_BYTES + 8 + 4 + 4,
    REPLY_BYTES = CODE_BYTES + NODE_HOST_BYTES + NODE_CPU_BYTES
};

/* What the client asks for. */
struct request {
    char token[TOKEN_MAX];
    char operation[OPERATION_BYTES];
    uint64_t max_size;
    uint32_t peer_timeout_s, tag;
};

/* What the server says: an empty code when it agrees, otherwise the code of an error. */
struct reply {
    char code[CODE_BYTES];
    struct node server;
};

void request_encode(const struct request *request, unsigned char bytes[REQUEST_BYTES]);
/* -1 when it is no request of this protocol. All texts end within their fields. */
int request_decode(struct request *request, const unsigned char bytes[REQUEST_BYTES]);

void reply_encode(const struct reply *reply, unsigned char bytes[REPLY_BYTES]);
void reply_decode(struct reply *reply, const unsigned char bytes[REPLY_BYTES]);

#endif
