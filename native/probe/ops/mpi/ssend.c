/* Synchronous sends: MPI_Ssend returns when the receiver has said that it has the message. */
#include "probe/mpi/calls.h"

static inline int send(struct mpi_side *side) {
    return MPI_Ssend(side->out, side->size, MPI_BYTE, side->link.peer, TAG_DATA, side->link.comm);
}

static inline int receive(struct mpi_side *side) {
    return MPI_Recv(side->out, side->size, MPI_BYTE, side->link.peer, TAG_DATA, side->link.comm,
                    MPI_STATUS_IGNORE);
}

static inline int bounce(struct mpi_side *side) {
    const int code = send(side);
    return code == MPI_SUCCESS ? receive(side) : code;
}

static inline int answer(struct mpi_side *side) {
    const int code = receive(side);
    return code == MPI_SUCCESS ? send(side) : code;
}

static int initiate_ping_pong(struct visit *visit, struct failure *failure) {
    struct mpi_side side = mpi_side(visit, NULL);
    return mpi_initiate(visit, &side, bounce, failure);
}

static int respond_ping_pong(struct visit *visit, struct failure *failure) {
    struct mpi_side side = mpi_side(visit, NULL);
    return mpi_respond(visit, &side, answer, failure);
}

static int initiate_call(struct visit *visit, struct failure *failure) {
    struct mpi_side side = mpi_side(visit, NULL);
    const struct timed_call timed = {.call = send, .after = call_hear};
    if (call_initiate(visit, &side, timed, failure) != 0)
        return -1;
    return mpi_agree(visit, true, failure);
}

static const struct operation PING_PONG = {
    .name = "mpi_ssend_pingpong",
    .link = LINK_MPI,
    .pattern = "synchronous ping-pong",
    .quantity = "half round trip",
    .divisor = 2,
    .moves_bytes = true,
    .echoes = true,
    .max_size = MESSAGE_MAX_BYTES,
    .summary = "MPI_Ssend and MPI_Recv between two ranks: each message is answered",
    .initiate = initiate_ping_pong,
    .respond = respond_ping_pong,
};
WULF_OPERATION(PING_PONG)

static const struct operation CALL = {
    .name = "mpi_ssend_overhead",
    .link = LINK_MPI,
    .pattern = "one call",
    .quantity = "time of MPI_Ssend",
    .divisor = 1,
    .timing = TIMING_ITERATION,
    .visit_scale = CALL_VISIT_SCALE,
    .max_size = MESSAGE_MAX_BYTES,
    .summary = "MPI_Ssend alone, to a rank that waits for the message: until it has answered",
    .initiate = initiate_call,
    .respond = call_respond_to_send,
};
__attribute__((constructor)) static void register_call(void) { operation_register(&CALL); }
