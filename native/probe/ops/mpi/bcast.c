/* Broadcast from rank 0 to all others: MPI_Bcast, and the barrier that tells when all have it. */
#include "probe/mpi/loops.h"

/* Without the barrier the root would run ahead: it has sent long before the last one has received. */
static inline int broadcast(struct mpi_side *side) {
    const int code = MPI_Bcast(side->out, side->size, MPI_BYTE, 0, side->link.comm);
    return code == MPI_SUCCESS ? MPI_Barrier(side->link.comm) : code;
}

static int initiate(struct visit *visit, struct failure *failure) {
    struct mpi_side side = mpi_side(visit, NULL);
    if (mpi_initiate(visit, &side, broadcast, failure) != 0)
        return -1;
    return mpi_agree(visit, true, failure);
}

static int respond(struct visit *visit, struct failure *failure) {
    struct mpi_side side = mpi_side(visit, NULL);
    if (mpi_respond(visit, &side, broadcast, failure) != 0)
        return -1;
    return mpi_check(visit, side.out, failure);
}

static const struct operation OPERATION = {
    .name = "mpi_bcast",
    .link = LINK_MPI,
    .group = true,
    .pattern = "broadcast",
    .quantity = "broadcast and barrier",
    .divisor = 1,
    .moves_bytes = true,
    .max_size = MESSAGE_MAX_BYTES,
    .summary = "MPI_Bcast from the first rank to all, and MPI_Barrier, which ends when all have it",
    .initiate = initiate,
    .respond = respond,
};
WULF_OPERATION(OPERATION)
