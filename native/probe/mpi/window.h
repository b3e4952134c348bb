/* A visit in which one rank reaches into the memory of the other. */
#ifndef WULF_MPI_WINDOW_H
#define WULF_MPI_WINDOW_H

#include "probe/mpi/loops.h"

/* Open the memory that this rank lends, if any, to the other. The initiator must not touch it before the
 * barrier of `window_close` ends. */
int window_open(const struct visit *visit, void *memory, MPI_Win *window, struct failure *failure);

/* All that was begun is complete, and the other rank's memory as well: waits for it, and lets go. */
int window_close(const struct visit *visit, MPI_Win *window, struct failure *failure);

/* The responder lends its memory while the other is at work; the library makes progress meanwhile. */
int window_respond(const struct visit *visit, void *memory, struct failure *failure);

__attribute__((always_inline)) static inline int window_initiate(struct visit *visit, mpi_iteration iterate,
                                                                 struct failure *failure) {
    MPI_Win window = MPI_WIN_NULL;
    struct mpi_side side = mpi_side(visit, &window);
    if (window_open(visit, NULL, &window, failure) != 0)
        return -1;
    int code = MPI_Win_lock(MPI_LOCK_SHARED, side.link.peer, 0, window);
    if (code != MPI_SUCCESS)
        return mpi_failed(&side.link, code, failure);
    if (mpi_initiate(visit, &side, iterate, failure) != 0)
        return -1;
    code = MPI_Win_unlock(side.link.peer, window);
    return code == MPI_SUCCESS ? window_close(visit, &window, failure)
                               : mpi_failed(&side.link, code, failure);
}

#endif
