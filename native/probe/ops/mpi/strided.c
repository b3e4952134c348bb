/* Ping-pong of a strided vector that the MPI library packs (a derived datatype). */
#include "probe/mpi/strided.h"

static inline int send(struct mpi_side *side) {
    const struct strided *strided = side->state;
    return MPI_Send(strided->memory, 1, strided->type, side->link.peer, TAG_DATA, side->link.comm);
}

static inline int receive(struct mpi_side *side) {
    const struct strided *strided = side->state;
    return MPI_Recv(strided->memory, 1, strided->type, side->link.peer, TAG_DATA, side->link.comm,
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
    return strided_initiate(visit, bounce, failure);
}

static int respond(struct visit *visit, struct failure *failure) {
    return strided_respond(visit, answer, failure);
}

static const struct operation OPERATION = {
    .name = "mpi_strided",
    .link = LINK_MPI,
    .pattern = "ping-pong",
    .quantity = "half round trip of a strided vector",
    .divisor = 2,
    .moves_bytes = true,
    .echoes = true,
    .parameter = {.name = "stride in doubles", .usual = STRIDE_USUAL, .low = 1, .high = STRIDE_MOST},
    .max_size = STRIDED_MAX_BYTES,
    .summary = "Blocking ping-pong of doubles that lie a stride apart, as a derived datatype",
    .initiate = initiate,
    .respond = respond,
};
WULF_OPERATION(OPERATION)
