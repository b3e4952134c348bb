/* One-sided: a message is put into the memory of the other rank, which takes no part, and is complete there.
 */
#include "probe/mpi/window.h"

static inline int put(struct mpi_side *side) {
    const MPI_Win window = *(MPI_Win *)side->state;
    const int code =
        MPI_Put(side->out, side->size, MPI_BYTE, side->link.peer, 0, side->size, MPI_BYTE, window);
    return code == MPI_SUCCESS ? MPI_Win_flush(side->link.peer, window) : code;
}

static int initiate(struct visit *visit, struct failure *failure) {
    if (window_initiate(visit, put, failure) != 0)
        return -1;
    return mpi_agree(visit, true, failure);
}

static int respond(struct visit *visit, struct failure *failure) {
    if (window_respond(visit, visit->spare, failure) != 0)
        return -1;
    return mpi_check(visit, visit->spare, failure);
}

static const struct operation OPERATION = {
    .name = "mpi_put",
    .link = LINK_MPI,
    .pattern = "one-sided",
    .quantity = "put and flush",
    .divisor = 1,
    .moves_bytes = true,
    .min_size = 1,
    .max_size = MESSAGE_MAX_BYTES,
    .summary = "MPI_Put into the memory of the other rank, and MPI_Win_flush, when it is complete there",
    .initiate = initiate,
    .respond = respond,
};
WULF_OPERATION(OPERATION)
