/* Sum of doubles over all ranks, for the first. */
#include "probe/mpi/collective.h"
#include "probe/mpi/described.h"

static int call(const struct part *part) {
    return MPI_Reduce(part->out, part->in, part->size / DOUBLE_BYTES, MPI_DOUBLE, MPI_SUM, 0, part->comm);
}

static int start(const struct part *part, MPI_Request *request) {
    return MPI_Ireduce(part->out, part->in, part->size / DOUBLE_BYTES, MPI_DOUBLE, MPI_SUM, 0, part->comm,
                       request);
}

DESCRIBE(Reduce, part->out, part->in, part->size / DOUBLE_BYTES, MPI_DOUBLE, MPI_SUM, 0, part->comm)

static void fill(const struct part *part) { part_put_values(part, 1); }

static bool right(const struct part *part) { return part->rank != 0 || part_has_sums(part, 0, part->ranks); }

WULF_COLLECTIVE("reduce", "MPI_Reduce: the sum of doubles over all ranks, for the first", MESSAGE_MAX_BYTES,
                call, start, DESCRIBED, fill, right, .pattern = "sum", .size_step = DOUBLE_BYTES)
