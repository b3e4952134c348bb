/* Operations in which all ranks take part: begun at the same time, over when the last rank is done. */
#ifndef WULF_MPI_COLLECTIVE_H
#define WULF_MPI_COLLECTIVE_H

#include <mpi.h>
#include <stdbool.h>

#include "probe/mpi/link.h"
#include "probe/operation.h"
#include "probe/payload.h"

/* What a rank has for one visit. */
struct part {
    MPI_Comm comm;
    int rank, ranks;
    unsigned char *out, *in; /* a message, or one of every rank: as `room` of the operation says */
    int size;                /* of a message */
    int *counts, *places;    /* of a message of every rank: all alike, one after the other */
    const struct visit *visit;
};

enum start {
    START_CLOCK,  /* at a time that was agreed on; an iteration for which some rank was late does not count */
    START_BARRIER /* when MPI_Barrier returns, as other tools do */
};

struct collective {
    int (*call)(const struct part *part);
    void (*fill)(const struct part *part);  /* before a visit */
    bool (*right)(const struct part *part); /* after it */
    enum start start;
};

/* A visit: the same on all ranks. */
int collective_visit(const struct collective *collective, struct visit *visit, struct failure *failure);

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

/* Register a collective under its name, and beginning with a barrier under NAME_barrier. */
#define WULF_COLLECTIVE(NAME, CALL, FILL, RIGHT, ...)                                                        \
    static const struct collective BY_CLOCK = {CALL, FILL, RIGHT, START_CLOCK};                              \
    static const struct collective BY_BARRIER = {CALL, FILL, RIGHT, START_BARRIER};                          \
    static int visit_by_clock(struct visit *visit, struct failure *failure) {                                \
        return collective_visit(&BY_CLOCK, visit, failure);                                                  \
    }                                                                                                        \
    static int visit_by_barrier(struct visit *visit, struct failure *failure) {                              \
        return collective_visit(&BY_BARRIER, visit, failure);                                                \
    }                                                                                                        \
    COLLECTIVE_OPERATION(OPERATION, NAME, "common start to last exit", visit_by_clock, __VA_ARGS__);         \
    COLLECTIVE_OPERATION(WITH_BARRIER, NAME "_barrier", "longest time since a barrier", visit_by_barrier,    \
                         __VA_ARGS__);                                                                       \
    __attribute__((constructor)) static void register_operations(void) {                                     \
        operation_register(&OPERATION);                                                                      \
        operation_register(&WITH_BARRIER);                                                                   \
    }

#define COLLECTIVE_OPERATION(VARIABLE, NAME, QUANTITY, VISIT, ...)                                           \
    static const struct operation VARIABLE = {.name = NAME,                                                  \
                                              .link = LINK_MPI,                                              \
                                              .group = true,                                                 \
                                              .quantity = QUANTITY,                                          \
                                              .divisor = 1,                                                  \
                                              .timing = TIMING_ITERATION,                                    \
                                              .tells_exits = true,                                           \
                                              .initiate = VISIT,                                             \
                                              .respond = VISIT,                                              \
                                              __VA_ARGS__}

#endif
