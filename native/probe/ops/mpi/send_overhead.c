/* What MPI_Send takes by itself: the receiver waits already, and says when it has the message. */
#include "probe/mpi/calls.h"

static int initiate(struct visit *visit, struct failure *failure) {
    struct mpi_side side = mpi_side(visit, NULL);
    const struct timed_call timed = {.call = call_send, .after = call_hear};
    if (call_initiate(visit, &side, timed, failure) != 0)
        return -1;
    return mpi_agree(visit, true, failure);
}

static const struct operation OPERATION = {
    .name = "mpi_send_overhead",
    .link = LINK_MPI,
    .pattern = "one call",
    .quantity = "time of MPI_Send",
    .divisor = 1,
    .timing = TIMING_ITERATION,
    .visit_scale = CALL_VISIT_SCALE,
    .max_size = MESSAGE_MAX_BYTES,
    .summary = "MPI_Send alone, to a rank that waits for the message",
    .initiate = initiate,
    .respond = call_respond_to_send,
};
WULF_OPERATION(OPERATION)
