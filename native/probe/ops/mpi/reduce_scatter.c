/* Sum of doubles over all ranks, of which each gets a part. */
#include "probe/mpi/collective.h"

static int call(const struct part *part) {
    return MPI_Reduce_scatter_block(part->out, part->in, part->size / DOUBLE_BYTES, MPI_DOUBLE, MPI_SUM,
                                    part->comm);
}

static void fill(const struct part *part) { part_put_values(part, (size_t)part->ranks); }

static bool right(const struct part *part) {
    return part_has_sums(part, (size_t)part->rank * (size_t)part->size / DOUBLE_BYTES, part->ranks);
}

WULF_COLLECTIVE("mpi_reduce_scatter", call, fill, right, .pattern = "sum in parts", .moves_bytes = true,
                .size_step = DOUBLE_BYTES, .room = ROOM_EVERY_RANK, .max_size = MESSAGE_MAX_BYTES / 16,
                .summary = "MPI_Reduce_scatter_block: the sum of doubles over all ranks, a part for each")
