/* MPI_Send to a rank that comes late: it returns at once where the library sends eagerly, and waits for the
 * receiver where it does not. */
#include "probe/mpi/calls.h"

enum { LATE_US = 5000, LATE_LEAST_US = 10, LATE_MOST_US = 1000000 };
static const uint64_t NS_PER_US = 1000;

static int initiate(struct visit *visit, struct failure *failure) {
    struct mpi_side side = mpi_side(visit, NULL);
    const struct timed_call timed = {.before = call_ask, .call = call_send, .after = call_hear};
    if (call_initiate(visit, &side, timed, failure) != 0)
        return -1;
    return mpi_agree(visit, true, failure);
}

static inline int come_late(struct mpi_side *side) {
    const int code = call_hear(side);
    call_nothing_for(*(const uint64_t *)side->state);
    return code == MPI_SUCCESS ? call_receive_and_answer(side) : code;
}

static int respond(struct visit *visit, struct failure *failure) {
    uint64_t late_ns = visit->parameter * NS_PER_US;
    struct mpi_side side = mpi_side(visit, &late_ns);
    if (mpi_respond(visit, &side, come_late, failure) != 0)
        return -1;
    return mpi_check(visit, side.in, failure);
}

static const struct operation OPERATION = {
    .name = "mpi_late_receiver",
    .link = LINK_MPI,
    .pattern = "one call",
    .quantity = "time of MPI_Send",
    .divisor = 1,
    .timing = TIMING_ITERATION,
    .visit_scale = CALL_VISIT_SCALE,
    .parameter = {.name = "µs that the receiver comes late",
                  .usual = LATE_US,
                  .low = LATE_LEAST_US,
                  .high = LATE_MOST_US},
    .max_size = MESSAGE_MAX_BYTES,
    .summary = "MPI_Send to a rank that comes late: it waits where a message is larger than the eager limit",
    .initiate = initiate,
    .respond = respond,
};
WULF_OPERATION(OPERATION)
