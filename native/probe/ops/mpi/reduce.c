/* Sum of doubles over all ranks, for the first. */
#include "probe/mpi/collective.h"

static int call(const struct part *part) {
    return MPI_Reduce(part->out, part->in, part->size / DOUBLE_BYTES, MPI_DOUBLE, MPI_SUM, 0, part->comm);
}

static void fill(const struct part *part) { part_put_values(part, 1); }

static bool right(const struct part *part) { return part->rank != 0 || part_has_sums(part, 0, part->ranks); }

WULF_COLLECTIVE("mpi_reduce", call, fill, right, .pattern = "sum", .moves_bytes = true,
                .size_step = DOUBLE_BYTES, .max_size = MESSAGE_MAX_BYTES,
                .summary = "MPI_Reduce: the sum of doubles over all ranks, for the first")
