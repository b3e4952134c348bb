/* Operations in which all ranks take part: begun at the same time, over when the last rank is done. */
#ifndef WULF_MPI_COLLECTIVE_H
#define WULF_MPI_COLLECTIVE_H

#include <mpi.h>
#include <stdbool.h>

#include "core/payload.h"
#include "probe/mpi/link.h"
#include "probe/operation.h"

/* What an iteration is. All but those after a barrier begin at a time that was agreed on; one for which some
 * rank was late does not count. */
enum way {
    WAY_BLOCKING,
    WAY_AFTER_BARRIER, /* blocking; begins when MPI_Barrier returns, as other tools do */
    WAY_STARTED,       /* started, and waited for at once */
    WAY_OVERLAPPED,    /* started, and waited for after a computation that lasts as long as it does alone */
    WAY_PERSISTENT,    /* described once, then started and waited for again and again */
};

/* What a rank has for one visit. */
struct part {
    MPI_Comm comm;
    int rank, ranks;
    enum way way;
    int64_t computation_ns;  /* between start and wait; 0 for none */
    unsigned char *out, *in; /* a message, or one of every rank: as `room` of the operation says */
    int size;                /* of a message */
    int *counts, *places;    /* of a message of every rank: all alike, one after the other */
    uint64_t iteration;      /* of the visit, from 0 on */
    MPI_Request request;     /* of a persistent one */
    void *state;             /* of the operation */
    struct visit *visit;
};

/* NULL stands for what there is not. */
struct collective {
    int (*call)(const struct part *part);
    /* The same without waiting. */
    int (*start)(const struct part *part, MPI_Request *request);
    /* The same described only, to be started again and again. */
    int (*describe)(const struct part *part, MPI_Request *request);
    void (*fill)(const struct part *part);  /* before a visit */
    bool (*right)(const struct part *part); /* after it */
    /* What lasts as long as a visit, such as an open file: 0, or -1 with `failure`. It is closed where it was
     * opened well. */
    int (*open)(struct part *part, struct failure *failure);
    int (*close)(struct part *part, struct failure *failure);
    /* Around each iteration, outside its time. */
    int (*before)(const struct part *part);
    int (*after)(const struct part *part);
};

/* A visit: the same on all ranks. */
int collective_visit(const struct collective *collective, enum way way, struct visit *visit,
                     struct failure *failure);

/* The message of one rank for another (or for all: -1), put somewhere, or found there. */
void part_put(const struct part *part, unsigned char *place, int from, int to);
bool part_has(const struct part *part, const unsigned char *place, int from, int to);

/* Doubles that sum up exactly: value `index` of a rank's message, and of the sum of the first so many ranks.
 */
enum { DOUBLE_BYTES = sizeof(double) };
double part_value(const struct part *part, size_t index, int rank);
double part_sum(const struct part *part, size_t index, int ranks);
/* All of a message, or of so many of them in a row. */
void part_put_values(const struct part *part, size_t messages);
bool part_has_sums(const struct part *part, size_t first, int ranks);

/* Register a collective as mpi_NAME, begun with a barrier as mpi_NAME_barrier, where it can be started
 * without waiting as mpi_iNAME and beside a computation as mpi_iNAME_overlap, and where the library has it as
 * mpi_NAME_persistent. MOST: bytes of a message; 0 where none is moved. */
#define WULF_COLLECTIVE(NAME, SUMMARY, MOST, CALL, START, DESCRIBE, FILL, RIGHT, ...)                        \
    static const struct collective COLLECTIVE = {                                                            \
        .call = CALL, .start = START, .describe = DESCRIBE, .fill = FILL, .right = RIGHT};                   \
    COLLECTIVE_OPERATION(BLOCKING, "mpi_" NAME, SUMMARY, "common start to last exit", MOST, __VA_ARGS__);    \
    COLLECTIVE_OPERATION(AFTER_BARRIER, "mpi_" NAME "_barrier", SUMMARY "; after a barrier",                 \
                         "longest time since a barrier", MOST, __VA_ARGS__);                                 \
    COLLECTIVE_OPERATION(STARTED, "mpi_i" NAME, SUMMARY "; non-blocking", "common start to last exit", MOST, \
                         __VA_ARGS__);                                                                       \
    /* What is left of a time is no time of bytes: there is no bandwidth. */                                 \
    COLLECTIVE_OPERATION(OVERLAPPED, "mpi_i" NAME "_overlap",                                                \
                         SUMMARY "; non-blocking, beside a computation", "time that did not overlap", MOST,  \
                         .overlaps = "mpi_i" NAME, __VA_ARGS__);                                             \
    COLLECTIVE_OPERATION(PERSISTENT, "mpi_" NAME "_persistent", SUMMARY "; persistent (MPI-4)",              \
                         "common start to last exit", MOST, __VA_ARGS__);                                    \
    __attribute__((constructor)) static void register_operations(void) {                                     \
        operation_register(&BLOCKING);                                                                       \
        operation_register(&AFTER_BARRIER);                                                                  \
        if (COLLECTIVE.describe != NULL)                                                                     \
            operation_register(&PERSISTENT);                                                                 \
        if (COLLECTIVE.start == NULL)                                                                        \
            return;                                                                                          \
        operation_register(&STARTED);                                                                        \
        operation_register(&OVERLAPPED);                                                                     \
    }

#define COLLECTIVE_OPERATION(WAY, NAME, SUMMARY, QUANTITY, MOST, ...)                                        \
    static int visit_##WAY(struct visit *visit, struct failure *failure) {                                   \
        return collective_visit(&COLLECTIVE, WAY_##WAY, visit, failure);                                     \
    }                                                                                                        \
    static const struct operation WAY = {.name = NAME,                                                       \
                                         .summary = SUMMARY,                                                 \
                                         .link = LINK_MPI,                                                   \
                                         .group = true,                                                      \
                                         .quantity = QUANTITY,                                               \
                                         .divisor = 1,                                                       \
                                         .max_size = MOST,                                                   \
                                         .moves_bytes = (MOST) > 0 && WAY_##WAY != WAY_OVERLAPPED,           \
                                         .timing = TIMING_ITERATION,                                         \
                                         .tells_exits = true,                                                \
                                         .initiate = visit_##WAY,                                            \
                                         .respond = visit_##WAY,                                             \
                                         __VA_ARGS__}

#endif
