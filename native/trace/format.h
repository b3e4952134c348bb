/* The trace of an MPI program: what the tracer writes and the replay reads; nothing else is shared.
 *
 * A trace is one stream for each rank. A stream is a header of TRACE_HEADER_BYTES, then slots of
 * TRACE_SLOT_BYTES, each a record, or a part of what belongs to the record before it. Only what `slots` of
 * the header counts is valid: it is raised after a record is whole, so that a program that dies leaves a
 * stream that can be read.
 *
 * A container (`.wtrace`) is a struct trace_container, `ranks` entries of struct trace_part, and at their
 * offsets the streams as they were written; at `note_offset` a text in JSON that says what was run.
 *
 * Numbers are little endian. Times are durations on one rank: no clock is compared with another rank's. */
#ifndef WULF_TRACE_FORMAT_H
#define WULF_TRACE_FORMAT_H

#include <stdint.h>

#define TRACE_STREAM_MAGIC "wulfrank"
#define TRACE_CONTAINER_MAGIC "wulftrce"

enum { TRACE_VERSION = 2, TRACE_HEADER_BYTES = 4096, TRACE_SLOT_BYTES = 32 };

/* How far the program came. */
enum trace_state {
    TRACE_RUNNING = 0,  /* it died, or was not finished when the trace was read */
    TRACE_FINISHED = 1, /* it came to MPI_Finalize */
    TRACE_FULL = 2,     /* the stream became as large as was allowed; `lost` calls are missing */
};

struct trace_header {
    char magic[8];
    uint32_t version, header_bytes, slot_bytes;
    int32_t rank, ranks;
    uint32_t state;    /* enum trace_state */
    uint64_t slots;    /* that are valid */
    uint64_t lost;     /* calls that are missing */
    uint64_t run_ns;   /* between the return of MPI_Init and the call of MPI_Finalize; 0 while it runs */
    uint64_t unsound;  /* set of 1 << enum trace_unsound */
    uint64_t passed;   /* calls that were passed through without a record */
    uint32_t checksum; /* CRC-32C of all valid slots; 0 where state is TRACE_RUNNING */
    uint32_t header_checksum; /* CRC-32C of this header with 0 here; 0 where state is TRACE_RUNNING */
    char host[256], library[256], program[1024];
};

/* Behind the header, within its TRACE_HEADER_BYTES: which threads called MPI, and how far their calls were at
 * the same time. Only of a program that finished and may call from several threads (MPI_THREAD_MULTIPLE). */
enum { TRACE_THREADS_OFFSET = 2048, TRACE_THREADS_NAMED = 16 };

struct trace_thread {
    char name[16]; /* as the system has it */
    uint64_t calls;
    uint64_t overlapping;    /* of them, at the same time as another thread's */
    uint64_t overlapping_ns; /* what these took */
};

struct trace_threads {
    uint32_t threads;    /* that called MPI; 0: not counted */
    uint32_t checksum;   /* CRC-32C of this with 0 here */
    uint64_t overlap_ns; /* time in which two threads or more were within MPI */
    uint64_t
        overlapping_ns; /* what calls took that were at the same time as others, of all threads together */
    struct trace_thread of[TRACE_THREADS_NAMED]; /* the first of them, in the order of their first calls */
};

/* Calls of threads that are at the same time for less than this part of a run are replayed one after the
 * other: a network on which each of them took ten times as long would change the run time by a hundredth. */
enum { TRACE_OVERLAP_PART = 1000 };

/* What a replay cannot follow soundly. */
enum trace_unsound {
    TRACE_THREADS,   /* threads called MPI at the same time */
    TRACE_ONE_SIDED, /* memory of other ranks was used */
    TRACE_PROCESSES, /* processes were started or joined */
    TRACE_INTER,     /* two groups talked with each other (inter-communicator) */
    TRACE_FILES,     /* files were read or written through MPI: their time is kept as it was */
    TRACE_CANCELLED, /* a request was cancelled that is no receive, or whose end was not seen */
    TRACE_PASSED,    /* calls that this tracer does not know moved data */
};

/* What a record is. The numbers stay as they are: new kinds go to the end. */
enum trace_kind {
    /* What describes the run: TRACE_PAYLOAD bytes follow. */
    TRACE_COMMUNICATOR = 0, /* `comm` its number; the payload: struct trace_communicator */
    TRACE_TIME = 1, /* times of the next record that 32 bits do not hold: `bytes` compute, payload duration */
    TRACE_PHASE = 2, /* MPI_Pcontrol(`tag`); of a pattern, `request` is an enum trace_mark */

    /* Point to point: `peer` and `tag` those of the message, `bytes` its size. */
    TRACE_SEND = 8,   /* also MPI_Rsend */
    TRACE_SSEND = 9,  /* done when the receive has begun */
    TRACE_BSEND = 10, /* done at once */
    TRACE_RECV = 11,  /* `peer` and `tag` as it came */
    TRACE_ISEND = 12, /* `request`; also MPI_Irsend */
    TRACE_ISSEND = 13,
    TRACE_IBSEND = 14,
    TRACE_IRECV =
        15, /* `peer` and `tag` as they were asked for; TRACE_ANY where any: what completes it says more */
    TRACE_SENDRECV = 16, /* what is sent; the next record, TRACE_RECV_PART, is what is received */
    TRACE_RECV_PART = 17,
    TRACE_SEND_INIT = 18, /* `request` stays until TRACE_FREE; TRACE_START begins it */
    TRACE_SSEND_INIT = 19,
    TRACE_BSEND_INIT = 20,
    TRACE_RECV_INIT = 21,
    TRACE_START = 22,
    TRACE_FREE = 23,
    TRACE_PROBE = 24, /* it waited for a message of `peer` and `tag` */
    TRACE_MRECV = 25, /* a receive of a message that was matched before */
    TRACE_IMRECV = 26,

    /* `request` is complete: one record for each, the first of a call has its times. `peer` and `tag` as it
       came. */
    TRACE_WAIT = 32,      /* it was waited for, alone or with all others of the call */
    TRACE_WAIT_SOME = 33, /* it came first, or among the first, of those waited for */
    TRACE_TEST = 34,      /* it was looked for, and was there */
    TRACE_CANCEL = 35,    /* a receive that ends with TRACE_NOBODY after it was taken back */

    /* Of all ranks of `comm`: `bytes` the rank's own part, `peer` the root or TRACE_NOBODY; `request` where
     * the call begins it only. See docs/reference for what the bytes of each are. */
    TRACE_BARRIER = 64,
    TRACE_BCAST = 65,
    TRACE_GATHER = 66,
    TRACE_GATHERV = 67,
    TRACE_SCATTER = 68,
    TRACE_SCATTERV = 69, /* payload, of the root: uint64_t bytes to each rank */
    TRACE_ALLGATHER = 70,
    TRACE_ALLGATHERV = 71, /* payload: uint64_t bytes of each rank */
    TRACE_ALLTOALL = 72,   /* bytes to one rank */
    TRACE_ALLTOALLV = 73,  /* payload: uint64_t bytes to each rank */
    TRACE_ALLTOALLW = 74,  /* payload as of TRACE_ALLTOALLV */
    TRACE_REDUCE = 75,
    TRACE_ALLREDUCE = 76,
    TRACE_REDUCE_SCATTER = 77,       /* payload: uint64_t bytes that each rank gets */
    TRACE_REDUCE_SCATTER_BLOCK = 78, /* bytes that one rank gets */
    TRACE_SCAN = 79,
    TRACE_EXSCAN = 80,
    TRACE_NEIGHBOR_ALLGATHER = 81,
    TRACE_NEIGHBOR_ALLGATHERV = 82,
    TRACE_NEIGHBOR_ALLTOALL = 83,
    TRACE_NEIGHBOR_ALLTOALLV = 84, /* payload: uint64_t bytes to each neighbour */
    TRACE_NEIGHBOR_ALLTOALLW = 85,
    TRACE_MAKE_COMMUNICATOR = 86, /* all ranks of `comm` made communicators of it: agreements on 8 B */

    /* Memory of other ranks: only patterns have them, with the bit TRACE_ONE_SIDED. `tag` is the window's
       number. */
    TRACE_WINDOW = 96,      /* all ranks of `comm` made one, `bytes` of it here */
    TRACE_FENCE = 97,       /* `bytes` have come since the fence before */
    TRACE_PUT = 98,         /* to `peer`; payload: uint64_t place in its window [B] */
    TRACE_WINDOW_FREE = 99, /* all ranks of `comm` gave it back */

    /* Counted and timed; what they moved is not known, but of those on files: `bytes` of this rank. The
     * payload is the call's name. */
    TRACE_OTHER = 127,
};

/* In a TRACE_PHASE of a pattern: what the next records belong to, for who makes them as they are meant. The
 * order in which they stand is that of a network without delay. */
enum trace_mark {
    TRACE_MARK_NONE = 0,
    TRACE_MARK_ITERATION = 1, /* an iteration of program `tag`, from 1 on */
    TRACE_MARK_SERVE = 2,     /* a server's: receives from anybody, each with the answer that follows it. The
                                 next of a client's is made when that client is the next one to come */
    TRACE_MARK_FARM = 3,      /* on all ranks of `comm`: `peer` gives tasks out, who is back first gets the
                                 next. Its payload: of each task uint64_t size, time to compute [ns], size of
                                 the result */
    TRACE_MARK_DONE = 4,      /* the end of TRACE_MARK_SERVE or TRACE_MARK_FARM */
    TRACE_MARK_END = 5,       /* all iterations are made */
};

/* Numbers of communicators; others of a rank from 2 on, none is used twice. */
enum { TRACE_WORLD = 0, TRACE_SELF = 1 };
/* In `peer`; TRACE_ANY also in `tag`. */
enum { TRACE_NOBODY = -1, TRACE_ANY = -2 };

enum trace_flags {
    TRACE_PAYLOAD = 1, /* a uint64_t with the bytes that follow, and these, fill the next slots */
    TRACE_IN_PLACE = 2,
    TRACE_NONBLOCKING = 4, /* a collective that is only begun */
    TRACE_FIRST = 8,       /* a call has several records: this is the first of them */
    TRACE_NEXT = 16,       /* … and this one of the others: without times */
    TRACE_WILD = 32,       /* source or tag were any */
    TRACE_FAILED = 64,     /* the call returned an error */
};

struct trace_record {
    uint8_t kind;
    uint8_t flags;
    uint16_t comm;
    int32_t peer; /* a rank of `comm` */
    int32_t tag;
    uint32_t request; /* a small number that is used again when the request is gone; 0: none */
    uint64_t bytes;
    uint32_t compute_ns; /* since the call before returned, without looks in vain (MPI_Test and the like) */
    uint32_t call_ns;    /* within the call, with these */
};

/* What a communicator is. That it is the same as one of another rank is known by its members, in their order,
 * and by how many of the same members were made before: making one is collective, so all members count alike.
 */
struct trace_communicator {
    uint32_t members; /* ranks */
    uint32_t sources; /* neighbours that send to this rank */
    uint32_t targets; /* neighbours that it sends to */
    uint32_t inter;   /* 1: between two groups; the members are those of both, the own group first */
    int32_t rank;     /* own */
    /* then int32_t: members as ranks of MPI_COMM_WORLD, sources, targets as ranks of this communicator */
};

struct trace_container {
    char magic[8];
    uint32_t version, ranks;
    uint64_t note_offset, note_bytes;
};

struct trace_part {
    uint64_t offset, bytes; /* of the stream, its header included; 0 bytes where a rank left none */
};

#ifdef __cplusplus
static_assert(sizeof(trace_record) == TRACE_SLOT_BYTES && sizeof(trace_header) <= TRACE_THREADS_OFFSET);
static_assert(TRACE_THREADS_OFFSET + sizeof(trace_threads) <= TRACE_HEADER_BYTES);
#else
_Static_assert(sizeof(struct trace_record) == TRACE_SLOT_BYTES, "a record fills a slot");
_Static_assert(sizeof(struct trace_header) <= TRACE_THREADS_OFFSET, "the header has room");
_Static_assert(TRACE_THREADS_OFFSET + sizeof(struct trace_threads) <= TRACE_HEADER_BYTES,
               "threads have room");
#endif

#endif
