/* One-sided: a message is read from the memory of the other rank, which takes no part. */
#include "probe/mpi/window.h"

static inline int get(struct mpi_side *side) {
    const MPI_Win window = *(MPI_Win *)side->state;
    const int code =
        MPI_Get(side->in, side->size, MPI_BYTE, side->link.peer, 0, side->size, MPI_BYTE, window);
    return code == MPI_SUCCESS ? MPI_Win_flush(side->link.peer, window) : code;
}

static int initiate(struct visit *visit, struct failure *failure) {
    if (window_initiate(visit, get, failure) != 0)
        return -1;
    return mpi_check(visit, visit->spare, failure);
}

static int respond(struct visit *visit, struct failure *failure) {
    mpi_fill(visit);
    if (window_respond(visit, visit->buffer, failure) != 0)
        return -1;
    return mpi_agree(visit, true, failure);
}

static const struct operation OPERATION = {
    .name = "mpi_get",
    .link = LINK_MPI,
    .pattern = "one-sided",
    .quantity = "get and flush",
    .divisor = 1,
    .moves_bytes = true,
    .min_size = 1,
    .max_size = MESSAGE_MAX_BYTES,
    .summary = "MPI_Get from the memory of the other rank, and MPI_Win_flush, when it is here",
    .initiate = initiate,
    .respond = respond,
};
WULF_OPERATION(OPERATION)
