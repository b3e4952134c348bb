/* A train of messages after a rest: what a network lets through at once, and what it carries in the long run.
 *
 * A shaped link (token bucket) carries a burst faster than its rate, and has to rest until it does so again.
 * So the sender rests before each train for twice as long as the longest one took. */
#include "probe/mpi/area.h"
#include "probe/mpi/calls.h"

enum { MESSAGES_USUAL = 8, MESSAGES_MOST = 64, TRAIN_MAX_BYTES = 1 << 20 };
static const uint64_t REST_LEAST_NS = 2000000, REST_MOST_NS = 20000000;

struct train {
    uint64_t messages, longest_ns;
};

static inline int rest(struct mpi_side *side) {
    const uint64_t wanted_ns = 2 * ((const struct train *)side->state)->longest_ns;
    const uint64_t most_ns = wanted_ns < REST_MOST_NS ? wanted_ns : REST_MOST_NS;
    call_nothing_for(most_ns > REST_LEAST_NS ? most_ns : REST_LEAST_NS);
    return MPI_SUCCESS;
}

static inline int send_train(struct mpi_side *side) {
    struct train *train = side->state;
    MPI_Request requests[MESSAGES_MOST];
    int code = MPI_SUCCESS;
    const uint64_t begin_ns = clock_now_ns();
    for (uint64_t i = 0; i < train->messages && code == MPI_SUCCESS; i++)
        code = MPI_Isend(side->out, side->size, MPI_BYTE, side->link.peer, TAG_DATA, side->link.comm,
                         &requests[i]);
    if (code == MPI_SUCCESS)
        code = MPI_Waitall((int)train->messages, requests, MPI_STATUSES_IGNORE);
    if (code == MPI_SUCCESS)
        code = call_hear(side);
    const uint64_t took_ns = clock_now_ns() - begin_ns;
    if (took_ns > train->longest_ns)
        train->longest_ns = took_ns;
    return code;
}

static inline int receive_train(struct mpi_side *side) {
    const struct train *train = side->state;
    MPI_Request requests[MESSAGES_MOST];
    int code = MPI_SUCCESS;
    for (uint64_t i = 0; i < train->messages && code == MPI_SUCCESS; i++)
        code = MPI_Irecv(side->in + i * (size_t)side->size, side->size, MPI_BYTE, side->link.peer, TAG_DATA,
                         side->link.comm, &requests[i]);
    if (code == MPI_SUCCESS)
        code = MPI_Waitall((int)train->messages, requests, MPI_STATUSES_IGNORE);
    return code == MPI_SUCCESS ? call_ask(side) : code;
}

static int initiate(struct visit *visit, struct failure *failure) {
    struct train train = {.messages = visit->parameter};
    struct mpi_side side = mpi_side(visit, &train);
    const struct timed_call timed = {.before = rest, .call = send_train};
    if (call_initiate(visit, &side, timed, failure) != 0)
        return -1;
    return mpi_agree(visit, true, failure);
}

static int respond(struct visit *visit, struct failure *failure) {
    struct train train = {.messages = visit->parameter};
    struct mpi_side side = mpi_side(visit, &train);
    side.in = area_of((size_t)visit->parameter * visit->size, failure);
    if (side.in == NULL || mpi_respond(visit, &side, receive_train, failure) != 0)
        return -1;
    return mpi_check(visit, side.in, failure);
}

static const struct operation OPERATION = {
    .name = "mpi_burst",
    .link = LINK_MPI,
    .pattern = "stream",
    .quantity = "time of a train, with its answer",
    .divisor = 1,
    .timing = TIMING_ITERATION,
    .visit_scale = CALL_VISIT_SCALE,
    .parameter = {.name = "messages of a train", .usual = MESSAGES_USUAL, .low = 1, .high = MESSAGES_MOST},
    .max_size = TRAIN_MAX_BYTES,
    .summary =
        "So many messages at once after a rest (MPI_Isend), then an answer: what passes as a burst, and what "
        "does not",
    .initiate = initiate,
    .respond = respond,
};
WULF_OPERATION(OPERATION)
