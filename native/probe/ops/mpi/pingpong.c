/* Blocking ping-pong between two ranks: MPI_Send and MPI_Recv, the message bounces. */
#include "probe/mpi/loops.h"

static inline int send(struct mpi_side *side) {
    return MPI_Send(side->out, side->size, MPI_BYTE, side->link.peer, TAG_DATA, side->link.comm);
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

static int initiate(struct visit *visit, struct failure *failure) {
    struct mpi_side side = mpi_side(visit, NULL);
    return mpi_initiate(visit, &side, bounce, failure);
}

static int respond(struct visit *visit, struct failure *failure) {
    struct mpi_side side = mpi_side(visit, NULL);
    return mpi_respond(visit, &side, answer, failure);
}

static const struct operation OPERATION = {
    .name = "mpi_pingpong",
    .link = LINK_MPI,
    .pattern = "ping-pong",
    .quantity = "half round trip",
    .divisor = 2,
    .moves_bytes = true,
    .usual = 1,
    .echoes = true,
    .max_size = MESSAGE_MAX_BYTES,
    .summary = "Blocking MPI_Send and MPI_Recv between two ranks",
    .initiate = initiate,
    .respond = respond,
};
WULF_OPERATION(OPERATION)
