#include "probe/net/handshake.h"

#include <string.h>

#include "probe/command.h"

static const unsigned char MAGIC[8] = {'W', 'U', 'L', 'F', 'P', 'R', 'B', '1'};

void request_encode(const struct request *request, unsigned char bytes[REQUEST_BYTES]) {
    memcpy(bytes, MAGIC, sizeof MAGIC);
    bytes += sizeof MAGIC;
    memcpy(bytes, request->token, TOKEN_MAX);
    bytes += TOKEN_MAX;
    memcpy(bytes, request->operation, OPERATION_BYTES);
    bytes += OPERATION_BYTES;
    put_u64(bytes, request->max_size);
    put_u32(bytes + 8, request->peer_timeout_s);
    put_u32(bytes + 12, request->tag);
}

int request_decode(struct request *request, const unsigned char bytes[REQUEST_BYTES]) {
    if (memcmp(bytes, MAGIC, sizeof MAGIC) != 0)
        return -1;
    bytes += sizeof MAGIC;
    memcpy(request->token, bytes, TOKEN_MAX);
    bytes += TOKEN_MAX;
    memcpy(request->operation, bytes, OPERATION_BYTES);
    bytes += OPERATION_BYTES;
    request->max_size = get_u64(bytes);
    request->peer_timeout_s = get_u32(bytes + 8);
    request->tag = get_u32(bytes + 12);
    request->token[TOKEN_MAX - 1] = '\0';
    request->operation[OPERATION_BYTES - 1] = '\0';
    return 0;
}

void reply_encode(const struct reply *reply, unsigned char bytes[REPLY_BYTES]) {
    memcpy(bytes, reply->code, CODE_BYTES);
    memcpy(bytes + CODE_BYTES, reply->server.host, NODE_HOST_BYTES);
    memcpy(bytes + CODE_BYTES + NODE_HOST_BYTES, reply->server.cpus, NODE_CPU_BYTES);
}

void reply_decode(struct reply *reply, const unsigned char bytes[REPLY_BYTES]) {
    memcpy(reply->code, bytes, CODE_BYTES);
    memcpy(reply->server.host, bytes + CODE_BYTES, NODE_HOST_BYTES);
    memcpy(reply->server.cpus, bytes + CODE_BYTES + NODE_HOST_BYTES, NODE_CPU_BYTES);
    reply->code[CODE_BYTES - 1] = '\0';
    reply->server.host[NODE_HOST_BYTES - 1] = '\0';
}
