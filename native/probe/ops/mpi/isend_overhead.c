/* What MPI_Isend takes by itself; that the message is complete is waited for, but not timed. */
#include "probe/mpi/calls.h"

static inline int start(struct mpi_side *side) {
    return MPI_Isend(side->out, side->size, MPI_BYTE, side->link.peer, TAG_DATA, side->link.comm,
                     side->state);
}

static inline int complete(struct mpi_side *side) {
    const int code = MPI_Wait(side->state, MPI_STATUS_IGNORE);
    return code == MPI_SUCCESS ? call_hear(side) : code;
}

static int initiate(struct visit *visit, struct failure *failure) {
    MPI_Request request = MPI_REQUEST_NULL;
    struct mpi_side side = mpi_side(visit, &request);
    const struct timed_call timed = {.call = start, .after = complete};
    if (call_initiate(visit, &side, timed, failure) != 0)
        return -1;
    return mpi_agree(visit, true, failure);
}

static const struct operation OPERATION = {
    .name = "mpi_isend_overhead",
    .link = LINK_MPI,
    .pattern = "one call",
    .quantity = "time of MPI_Isend",
    .divisor = 1,
    .timing = TIMING_ITERATION,
    .visit_scale = CALL_VISIT_SCALE,
    .max_size = MESSAGE_MAX_BYTES,
    .summary = "MPI_Isend alone, to a rank that waits for the message; MPI_Wait is not timed",
    .initiate = initiate,
    .respond = call_respond_to_send,
};
WULF_OPERATION(OPERATION)
