/* Sum of doubles over all ranks, which all of them get. Nobody can leave before all have come. */
#include "probe/mpi/loops.h"

enum { ELEMENT_BYTES = sizeof(double), VALUES = 1000 };

/* What a rank adds: whole numbers, whose sum is exact in any order. */
static double own_value(const struct visit *visit, size_t index, int rank) {
    return (double)((visit->seed + visit->number + index) % VALUES) + rank;
}

static inline int sum(struct mpi_side *side) {
    return MPI_Allreduce(side->out, side->in, side->size / ELEMENT_BYTES, MPI_DOUBLE, MPI_SUM,
                         side->link.comm);
}

static void fill(const struct visit *visit) {
    const struct mpi_link *link = visit->link;
    double *values = (double *)(void *)visit->buffer;
    int rank = 0;
    MPI_Comm_rank(link->comm, &rank);
    for (size_t i = 0; i < visit->size / ELEMENT_BYTES; i++)
        values[i] = own_value(visit, i, rank);
}

static int check(struct visit *visit, struct failure *failure) {
    const struct mpi_link *link = visit->link;
    const double *sums = (const double *)(const void *)visit->spare;
    bool right = true;
    int ranks = 0;
    MPI_Comm_size(link->comm, &ranks);
    for (size_t i = 0; i < visit->size / ELEMENT_BYTES; i++) {
        const double expected = ranks * own_value(visit, i, 0) + (double)ranks * (ranks - 1) / 2;
        right = right && sums[i] >= expected && sums[i] <= expected;
    }
    return mpi_agree(visit, right, failure);
}

static int initiate(struct visit *visit, struct failure *failure) {
    struct mpi_side side = mpi_side(visit, NULL);
    fill(visit);
    return mpi_initiate(visit, &side, sum, failure) == 0 ? check(visit, failure) : -1;
}

static int respond(struct visit *visit, struct failure *failure) {
    struct mpi_side side = mpi_side(visit, NULL);
    fill(visit);
    return mpi_respond(visit, &side, sum, failure) == 0 ? check(visit, failure) : -1;
}

static const struct operation OPERATION = {
    .name = "mpi_allreduce",
    .link = LINK_MPI,
    .group = true,
    .pattern = "sum for all",
    .quantity = "allreduce",
    .divisor = 1,
    .moves_bytes = true,
    .size_step = ELEMENT_BYTES,
    .max_size = MESSAGE_MAX_BYTES,
    .summary = "MPI_Allreduce: the sum of doubles over all ranks, which all of them get",
    .initiate = initiate,
    .respond = respond,
};
WULF_OPERATION(OPERATION)
