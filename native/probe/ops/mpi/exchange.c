/* Both ranks send to each other at the same time: what a link does in both directions at once. */
#include "probe/mpi/loops.h"

/* Ranks that meet need some hundreds of messages until each finds the other's message there, as they do in a
 * program: in visits of a millisecond an exchange of 1 B takes a tenth longer than in visits of 20. */
enum { EXCHANGE_VISIT_SCALE = 10 };

static inline int exchange(struct mpi_side *side) {
    MPI_Request requests[2];
    int code =
        MPI_Irecv(side->in, side->size, MPI_BYTE, side->link.peer, TAG_DATA, side->link.comm, &requests[0]);
    if (code == MPI_SUCCESS)
        code = MPI_Isend(side->out, side->size, MPI_BYTE, side->link.peer, TAG_DATA, side->link.comm,
                         &requests[1]);
    return code == MPI_SUCCESS ? MPI_Waitall(2, requests, MPI_STATUSES_IGNORE) : code;
}

static int initiate(struct visit *visit, struct failure *failure) {
    struct mpi_side side = mpi_side(visit, NULL);
    if (mpi_initiate(visit, &side, exchange, failure) != 0)
        return -1;
    return mpi_check(visit, side.in, failure);
}

static int respond(struct visit *visit, struct failure *failure) {
    struct mpi_side side = mpi_side(visit, NULL);
    mpi_fill(visit);
    if (mpi_respond(visit, &side, exchange, failure) != 0)
        return -1;
    return mpi_check(visit, side.in, failure);
}

static const struct operation OPERATION = {
    .name = "mpi_exchange",
    .link = LINK_MPI,
    .pattern = "exchange",
    .quantity = "exchange",
    .divisor = 1,
    .moves_bytes = true,
    .visit_scale = EXCHANGE_VISIT_SCALE,
    .max_size = MESSAGE_MAX_BYTES,
    .summary = "Two ranks send to each other at the same time (MPI_Isend, MPI_Irecv): a message each way",
    .initiate = initiate,
    .respond = respond,
};
WULF_OPERATION(OPERATION)
