/* The first message of a launch, with its answer: libraries connect two ranks when one first sends to the
 * other.
 *
 * There is one such time in a launch, which all visits tell. */
#include "probe/mpi/calls.h"

static uint64_t took_ns;

static int first_message(const void *link) {
    struct mpi_side side = {.link = *(const struct mpi_link *)link};
    int rank = 0;
    MPI_Comm_rank(side.link.comm, &rank);
    const uint64_t begin_ns = clock_now_ns();
    int code = rank == 0 ? call_ask(&side) : call_hear(&side);
    if (code == MPI_SUCCESS)
        code = rank == 0 ? call_hear(&side) : call_ask(&side);
    took_ns = clock_now_ns() - begin_ns;
    return code;
}

static int initiate(struct visit *visit, struct failure *failure) {
    (void)failure;
    for (uint64_t i = 0; i < visit->iterations; i++)
        visit->times_ns[i] = took_ns;
    visit->total_ns = took_ns * visit->iterations;
    visit->timed = visit->iterations;
    return 0;
}

static const struct operation OPERATION = {
    .name = "mpi_connect",
    .link = LINK_MPI,
    .pattern = "one call",
    .quantity = "time of the first message, with its answer",
    .divisor = 1,
    .timing = TIMING_ITERATION,
    .max_size = 0,
    .summary =
        "The first message of a launch, with its answer: two ranks are connected when one sends to the other",
    .at_first = first_message,
    .initiate = initiate,
};
WULF_OPERATION(OPERATION)
