/* Non-blocking ping-pong: the receive is posted before the message is sent, and both are waited for. */
#include "probe/mpi/loops.h"

static inline int bounce(struct mpi_side *side) {
    MPI_Request requests[2];
    int code =
        MPI_Irecv(side->in, side->size, MPI_BYTE, side->link.peer, TAG_DATA, side->link.comm, &requests[0]);
    if (code == MPI_SUCCESS)
        code = MPI_Isend(side->out, side->size, MPI_BYTE, side->link.peer, TAG_DATA, side->link.comm,
                         &requests[1]);
    return code == MPI_SUCCESS ? MPI_Waitall(2, requests, MPI_STATUSES_IGNORE) : code;
}

static inline int answer(struct mpi_side *side) {
    MPI_Request request;
    int code =
        MPI_Irecv(side->out, side->size, MPI_BYTE, side->link.peer, TAG_DATA, side->link.comm, &request);
    if (code == MPI_SUCCESS)
        code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (code == MPI_SUCCESS)
        code =
            MPI_Isend(side->out, side->size, MPI_BYTE, side->link.peer, TAG_DATA, side->link.comm, &request);
    return code == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : code;
}

static int initiate(struct visit *visit, struct failure *failure) {
    struct mpi_side side = mpi_side(visit, NULL);
    if (mpi_initiate(visit, &side, bounce, failure) != 0)
        return -1;
    return mpi_check(visit, side.in, failure);
}

static int respond(struct visit *visit, struct failure *failure) {
    struct mpi_side side = mpi_side(visit, NULL);
    if (mpi_respond(visit, &side, answer, failure) != 0)
        return -1;
    return mpi_check(visit, side.out, failure);
}

static const struct operation OPERATION = {
    .name = "mpi_pingpong_nb",
    .link = LINK_MPI,
    .pattern = "ping-pong",
    .quantity = "half round trip",
    .divisor = 2,
    .moves_bytes = true,
    .max_size = MESSAGE_MAX_BYTES,
    .summary = "MPI_Isend and MPI_Irecv between two ranks, the receive posted first",
    .initiate = initiate,
    .respond = respond,
};
WULF_OPERATION(OPERATION)
