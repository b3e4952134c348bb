/* What MPI_Recv takes by itself: the message, or the announcement of a large one, has arrived by then. */
#include "probe/mpi/calls.h"

enum { PATIENCE = 2, TRIES = 3, SIZES_MOST = 256 };

static inline int ask_and_wait(struct mpi_side *side) {
    const int code = call_ask(side);
    call_nothing_for(*(const uint64_t *)side->state);
    return code;
}

static inline int hear_and_send(struct mpi_side *side) {
    const int code = call_hear(side);
    return code == MPI_SUCCESS ? call_send(side) : code;
}

/* After so long a message that was asked for is there for certain: twice what it takes to ask for one and to
 * have it. What takes long once was disturbed, so the shortest of all tries of a launch at this size counts.
 */
static int find_wait(struct mpi_side *side, uint64_t *wait_ns, struct failure *failure) {
    static struct {
        int size;
        uint64_t shortest_ns;
    } known[SIZES_MOST];
    size_t at = 0;
    while (at < SIZES_MOST - 1 && known[at].shortest_ns != 0 && known[at].size != side->size)
        at++;
    for (int i = 0; i < TRIES; i++) {
        const uint64_t begun_ns = clock_now_ns();
        int code = call_ask(side);
        if (code == MPI_SUCCESS)
            code = call_receive(side);
        if (code != MPI_SUCCESS)
            return mpi_failed(&side->link, code, failure);
        const uint64_t took_ns = clock_now_ns() - begun_ns;
        if (known[at].size != side->size || known[at].shortest_ns == 0 || took_ns < known[at].shortest_ns)
            known[at].shortest_ns = took_ns;
        known[at].size = side->size;
    }
    *wait_ns = PATIENCE * known[at].shortest_ns;
    return 0;
}

static int initiate(struct visit *visit, struct failure *failure) {
    uint64_t wait_ns = 0;
    struct mpi_side side = mpi_side(visit, &wait_ns);
    const struct timed_call timed = {.before = ask_and_wait, .call = call_receive};
    if (find_wait(&side, &wait_ns, failure) != 0 || call_initiate(visit, &side, timed, failure) != 0)
        return -1;
    return mpi_check(visit, side.in, failure);
}

static int respond(struct visit *visit, struct failure *failure) {
    struct mpi_side side = mpi_side(visit, NULL);
    struct visit all = *visit;
    all.iterations += TRIES;
    mpi_fill(visit);
    if (mpi_respond(&all, &side, hear_and_send, failure) != 0)
        return -1;
    return mpi_agree(visit, true, failure);
}

static const struct operation OPERATION = {
    .name = "mpi_recv_overhead",
    .link = LINK_MPI,
    .pattern = "one call",
    .quantity = "time of MPI_Recv",
    .divisor = 1,
    .timing = TIMING_ITERATION,
    .visit_scale = CALL_VISIT_SCALE,
    .max_size = MESSAGE_MAX_BYTES,
    .summary = "MPI_Recv alone, of a message that has arrived, or of which the announcement has",
    .initiate = initiate,
    .respond = respond,
};
WULF_OPERATION(OPERATION)
