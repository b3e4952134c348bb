/* The loops of a visit between ranks: an operation only says what one iteration is. */
#ifndef WULF_MPI_LOOPS_H
#define WULF_MPI_LOOPS_H

#include <mpi.h>

#include "core/clock.h"
#include "core/payload.h"
#include "core/watchdog.h"
#include "probe/mpi/link.h"
#include "probe/operation.h"

/* What an iteration works on: a copy of the visit's, so that the timed loop reads nothing else. */
struct mpi_side {
    struct mpi_link link;
    unsigned char *out, *in; /* an iteration may exchange them */
    int size;
    void *state; /* of the operation */
};

/* One iteration, on either side: what the MPI library says of it. */
typedef int (*mpi_iteration)(struct mpi_side *side);

static inline struct mpi_side mpi_side(const struct visit *visit, void *state) {
    return (struct mpi_side){.link = *(const struct mpi_link *)visit->link,
                             .out = visit->buffer,
                             .in = visit->spare,
                             .size = (int)visit->size,
                             .state = state};
}

/* Inlined with its iteration, a constant: nothing but the calls of the library is in the timed loop. One
 * iteration more than asked for comes first: it finds cold caches and a busy responder. */
__attribute__((always_inline)) static inline int
mpi_initiate(struct visit *visit, struct mpi_side *side, mpi_iteration iterate, struct failure *failure) {
    const uint64_t iterations = visit->iterations;
    uint64_t *const times_ns = visit->times_ns;
    int code = iterate(side);
    const uint64_t begin = clock_now_ns();
    uint64_t before = begin;
    for (uint64_t i = 0; i < iterations && code == MPI_SUCCESS; i++) {
        code = iterate(side);
        watchdog_beat();
        if (times_ns != NULL) {
            const uint64_t now = clock_now_ns();
            times_ns[i] = now - before;
            before = now;
        }
    }
    visit->total_ns = clock_now_ns() - begin;
    visit->timed = iterations;
    return code == MPI_SUCCESS ? 0 : mpi_failed(&side->link, code, failure);
}

__attribute__((always_inline)) static inline int mpi_respond(const struct visit *visit, struct mpi_side *side,
                                                             mpi_iteration iterate, struct failure *failure) {
    const uint64_t iterations = visit->iterations + 1;
    int code = MPI_SUCCESS;
    for (uint64_t i = 0; i < iterations && code == MPI_SUCCESS; i++) {
        code = iterate(side);
        watchdog_beat();
    }
    return code == MPI_SUCCESS ? 0 : mpi_failed(&side->link, code, failure);
}

/* Where every rank sends the visit's payload: put it there. The initiator's has it from the sweep. */
static inline void mpi_fill(const struct visit *visit) {
    payload_fill(visit->buffer, 0, visit->size, visit->seed, visit->number);
}

/* After the clock has stopped: all ranks say whether what they received is right. */
static inline int mpi_agree(struct visit *visit, bool right, struct failure *failure) {
    const struct mpi_link *link = visit->link;
    int corrupt = !right;
    const int code = MPI_Allreduce(MPI_IN_PLACE, &corrupt, 1, MPI_INT, MPI_LOR, link->comm);
    visit->corrupt = corrupt != 0;
    return code == MPI_SUCCESS ? 0 : mpi_failed(link, code, failure);
}

static inline int mpi_check(struct visit *visit, const unsigned char *received, struct failure *failure) {
    return mpi_agree(visit, payload_matches(received, 0, visit->size, visit->seed, visit->number), failure);
}

#endif
