/* Sum of doubles over all ranks, for all of them. */
#include "probe/mpi/collective.h"
#include "probe/mpi/described.h"

static int call(const struct part *part) {
    return MPI_Allreduce(part->out, part->in, part->size / DOUBLE_BYTES, MPI_DOUBLE, MPI_SUM, part->comm);
}

static int start(const struct part *part, MPI_Request *request) {
    return MPI_Iallreduce(part->out, part->in, part->size / DOUBLE_BYTES, MPI_DOUBLE, MPI_SUM, part->comm,
                          request);
}

DESCRIBE(Allreduce, part->out, part->in, part->size / DOUBLE_BYTES, MPI_DOUBLE, MPI_SUM, part->comm)

static void fill(const struct part *part) { part_put_values(part, 1); }

static bool right(const struct part *part) { return part_has_sums(part, 0, part->ranks); }

WULF_COLLECTIVE("allreduce", "MPI_Allreduce: the sum of doubles over all ranks, for all of them",
                MESSAGE_MAX_BYTES, call, start, DESCRIBED, fill, right, .pattern = "sum for all",
                .size_step = DOUBLE_BYTES)
