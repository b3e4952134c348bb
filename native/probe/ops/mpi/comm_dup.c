/* Communicators that are made and freed: what ranks agree on, and what the library does on each of them. */
#include "probe/mpi/loops.h"

static inline int duplicate(struct mpi_side *side) {
    MPI_Comm made;
    const int code = MPI_Comm_dup(side->link.comm, &made);
    return code == MPI_SUCCESS ? MPI_Comm_free(&made) : code;
}

static inline int split(struct mpi_side *side) {
    MPI_Comm made;
    const int code = MPI_Comm_split(side->link.comm, 0, 0, &made);
    return code == MPI_SUCCESS ? MPI_Comm_free(&made) : code;
}

static int initiate_duplicate(struct visit *visit, struct failure *failure) {
    struct mpi_side side = mpi_side(visit, NULL);
    return mpi_initiate(visit, &side, duplicate, failure);
}

static int respond_duplicate(struct visit *visit, struct failure *failure) {
    struct mpi_side side = mpi_side(visit, NULL);
    return mpi_respond(visit, &side, duplicate, failure);
}

static int initiate_split(struct visit *visit, struct failure *failure) {
    struct mpi_side side = mpi_side(visit, NULL);
    return mpi_initiate(visit, &side, split, failure);
}

static int respond_split(struct visit *visit, struct failure *failure) {
    struct mpi_side side = mpi_side(visit, NULL);
    return mpi_respond(visit, &side, split, failure);
}

static const struct operation DUPLICATE = {
    .name = "mpi_comm_dup",
    .link = LINK_MPI,
    .pattern = "communicator",
    .quantity = "time of MPI_Comm_dup and MPI_Comm_free",
    .divisor = 1,
    .max_size = 0,
    .summary = "Two ranks duplicate their communicator and free it (MPI_Comm_dup, MPI_Comm_free)",
    .initiate = initiate_duplicate,
    .respond = respond_duplicate,
};
WULF_OPERATION(DUPLICATE)

static const struct operation SPLIT = {
    .name = "mpi_comm_split",
    .link = LINK_MPI,
    .pattern = "communicator",
    .quantity = "time of MPI_Comm_split and MPI_Comm_free",
    .divisor = 1,
    .max_size = 0,
    .summary = "Two ranks make a communicator of both and free it (MPI_Comm_split, MPI_Comm_free)",
    .initiate = initiate_split,
    .respond = respond_split,
};
__attribute__((constructor)) static void register_split(void) { operation_register(&SPLIT); }
