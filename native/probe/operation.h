/* An operation: one benchmark, in one file of ops/, that registers itself. */
#ifndef WULF_OPERATION_H
#define WULF_OPERATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/failure.h"

enum { MESSAGE_MAX_BYTES = 16 << 20, OPERATIONS_MAX = 256 };

enum link_kind { LINK_NONE, LINK_MPI, LINK_NET };

enum timing {
    TIMING_EITHER,    /* each iteration where the clock is cheap enough for it, else the visit as a whole */
    TIMING_ITERATION, /* each iteration, whatever the clock costs */
    TIMING_BATCH      /* the visit as a whole */
};

/* What the buffers of a visit have room for. */
enum room {
    ROOM_MESSAGE,    /* one message */
    ROOM_EVERY_RANK, /* one of every rank, one after the other */
};

/* A whole number that an operation takes: NAME:NUMBER. */
struct parameter {
    const char *name; /* in words; NULL where it takes none */
    uint64_t usual, low, high;
};

/* One visit of one cell: so many iterations at one size. */
struct visit {
    void *link; /* struct mpi_link or struct net_link, as the operation's kind says */
    /* The message, and room for another one (see `room`); page aligned, of one byte more than that at least.
     * An operation may swap them. */
    unsigned char *buffer, *spare;
    size_t size;
    uint64_t iterations, number, seed;
    uint64_t parameter; /* of the operation */

    /* Results, written by the initiating side. */
    uint64_t *times_ns; /* room for `iterations` times; NULL when only the total is wanted */
    uint64_t timed;     /* iterations that have a time */
    uint64_t total_ns;  /* of those */
    uint64_t lasted_ns; /* of all iterations, where that is not what is recorded; else 0 */
    uint64_t lost;      /* datagrams without an answer */
    uint64_t late;      /* iterations that do not count, as some rank began too late */
    /* So late a rank may have been for one that counts, and how far two comparisons of the ranks' clocks
     * differ; 0 where there was no common time. */
    uint64_t tolerance_ns, clock_error_ns;
    double *exits_ns; /* room for the median time of every rank, where ranks say it (see `tells_exits`) */
    /* Of a file's bytes that were read, the share that was in the nodes' memory before; of those that were
     * written, after. Not a number where the nodes do not say it. */
    double in_memory;
    double sent_per_s; /* datagrams, of the initiator while it was sending (see `tells_sent`) */
    bool corrupt;      /* the payload was not what had been sent */

    /* Of a collective: the iterations alone, with no common start, and no time of them. */
    bool bare;
};

/* All that is known of a benchmark is said here, and told by --list (docs/protocol.md). */
struct operation {
    const char *name;
    enum link_kind link;
    /* Who sends to whom: "ping-pong", "stream"; NULL where nobody does. Words for the reader, but for one: of
     * a "ping-pong" alone a zero-byte latency is modelled (src/wulf/stats/model/curve.py). */
    const char *pattern;
    const char *quantity; /* in words: "half round trip" */
    double divisor;       /* a recorded value divided by this is the quantity */
    bool group;           /* as many ranks as there are take part, not two */
    bool higher_is_better;
    bool moves_bytes; /* size by value is a bandwidth */
    /* The operation of which a value is the time that is left beside a computation as long; NULL for none. */
    const char *overlaps;
    unsigned usual; /* place among those that are measured when none is named; 0: not among them */
    enum timing timing;
    bool lossy;
    bool tells_exits;    /* of every rank, when it was done */
    bool tells_sent;     /* at which rate datagrams were sent */
    bool files;          /* on files in a directory, which --dir names */
    bool echoes;         /* the message comes back to the initiator, which then checks it */
    size_t header_bytes; /* at the beginning of a message, not payload */
    size_t min_size, max_size;
    size_t size_step; /* sizes are multiples of it; 0 counts as 1 */
    struct parameter parameter;
    enum room room;
    unsigned visit_scale;   /* visits are so many times as long as asked for; 0 counts as 1 */
    unsigned warmup_visits; /* at most, of what may never settle; 0 counts as WARMUP_MAX_VISITS */
    const char *summary;
    /* Before the ranks have sent each other anything, on both of them; NULL for nothing. What the library
     * says. */
    int (*at_first)(const void *link);
    /* One visit, on either side: 0, or -1 with `failure` set. `respond` is NULL when nobody answers. */
    int (*initiate)(struct visit *visit, struct failure *failure);
    int (*respond)(struct visit *visit, struct failure *failure);
};

/* Called before main, by WULF_OPERATION. */
void operation_register(const struct operation *operation);

/* Put `operation`, a constant of this file, on the list of this program. */
#define WULF_OPERATION(operation)                                                                            \
    __attribute__((constructor)) static void register_operation(void) { operation_register(&(operation)); }

/* By name, which may be followed by a colon and a number; NULL when this program has no such operation. */
const struct operation *operation_find(const char *name);

/* The number after the colon of a name, else the usual one. 0, or -1 when the operation takes no such number.
 */
int operation_parameter(const char *name, uint64_t *parameter);

/* All operations by name; NULL after the last one. */
const struct operation *operation_at(size_t index);

#endif
