/* What the initiator tells the responder before each visit. */
#ifndef WULF_COMMAND_H
#define WULF_COMMAND_H

#include <stddef.h>
#include <stdint.h>

#include "core/failure.h"

enum { COMMAND_BYTES = 40 };
enum command_kind {
    COMMAND_VISIT = 1,
    COMMAND_END = 2,
    COMMAND_WAIT = 3,      /* until the next one */
    COMMAND_REFERENCE = 4, /* a visit of the reference, of `size` microseconds */
    COMMAND_ALTERNATE = 5, /* have this node's guard make the setting whose letter is `number` */
    COMMAND_SCHEDULED = 6  /* how was this rank scheduled since its first command? */
};

struct command {
    uint64_t kind, size, iterations, number, seed;
};

/* Little-endian numbers, so that both ends agree. */
void put_u64(unsigned char *bytes, uint64_t value);
uint64_t get_u64(const unsigned char *bytes);
void put_u32(unsigned char *bytes, uint32_t value);
uint32_t get_u32(const unsigned char *bytes);

void command_encode(const struct command *command, unsigned char bytes[COMMAND_BYTES]);
void command_decode(struct command *command, const unsigned char bytes[COMMAND_BYTES]);

/* The way commands take between the two sides. Each call moves the whole or fails with -1. */
struct channel {
    void *link;
    const char *peer; /* its name in errors */
    size_t peers;     /* how many it reaches: one, or all other ranks; each of them is sent the same */
    int (*send)(void *link, const unsigned char *bytes, size_t length, struct failure *failure);
    /* So many bytes from each of them, one after the other in `bytes`. */
    int (*receive)(void *link, unsigned char *bytes, size_t length, struct failure *failure);
};

#endif
