/* Ping-pongs of all ranks at once across the middle: each of the first half with one of the other. */
#include "probe/mpi/loops.h"

/* The partner of this rank; MPI_PROC_NULL for the last one where their number is odd. */
static struct mpi_side side_of(const struct visit *visit, bool *first) {
    struct mpi_side side = mpi_side(visit, NULL);
    int rank = 0;
    int ranks = 0;
    MPI_Comm_rank(side.link.comm, &rank);
    MPI_Comm_size(side.link.comm, &ranks);
    const int half = ranks / 2;
    *first = rank < half;
    side.link.peer = *first ? rank + half : rank < 2 * half ? rank - half : MPI_PROC_NULL;
    return side;
}

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

static int check(struct visit *visit, const struct mpi_side *side, struct failure *failure) {
    return side->link.peer == MPI_PROC_NULL ? mpi_agree(visit, true, failure)
                                            : mpi_check(visit, side->out, failure);
}

static int initiate(struct visit *visit, struct failure *failure) {
    bool first = true;
    struct mpi_side side = side_of(visit, &first);
    /* The others begin when they have heard of the visit: all at once, or it would be the first pair alone.
     */
    const int code = MPI_Barrier(side.link.comm);
    if (code != MPI_SUCCESS)
        return mpi_failed(&side.link, code, failure);
    if (mpi_initiate(visit, &side, bounce, failure) != 0)
        return -1;
    return check(visit, &side, failure);
}

static int respond(struct visit *visit, struct failure *failure) {
    bool first = false;
    struct mpi_side side = side_of(visit, &first);
    const int code = MPI_Barrier(side.link.comm);
    if (code != MPI_SUCCESS)
        return mpi_failed(&side.link, code, failure);
    if (first)
        mpi_fill(visit);
    if ((first ? mpi_respond(visit, &side, bounce, failure) : mpi_respond(visit, &side, answer, failure)) !=
        0)
        return -1;
    return check(visit, &side, failure);
}

static const struct operation OPERATION = {
    .name = "mpi_bisection",
    .link = LINK_MPI,
    .group = true,
    .pattern = "bisection",
    .quantity = "half round trip across the bisection",
    .divisor = 2,
    .moves_bytes = true,
    .max_size = MESSAGE_MAX_BYTES,
    .summary =
        "Ping-pongs of all ranks at once, each of the first half with one of the other; of the first pair",
    .initiate = initiate,
    .respond = respond,
};
WULF_OPERATION(OPERATION)
