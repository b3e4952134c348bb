/* Sum of doubles over all ranks, of which each gets a part. */
#include "probe/mpi/collective.h"
#include "probe/mpi/described.h"

static int call(const struct part *part) {
    return MPI_Reduce_scatter_block(part->out, part->in, part->size / DOUBLE_BYTES, MPI_DOUBLE, MPI_SUM,
                                    part->comm);
}

static int start(const struct part *part, MPI_Request *request) {
    return MPI_Ireduce_scatter_block(part->out, part->in, part->size / DOUBLE_BYTES, MPI_DOUBLE, MPI_SUM,
                                     part->comm, request);
}

DESCRIBE(Reduce_scatter_block, part->out, part->in, part->size / DOUBLE_BYTES, MPI_DOUBLE, MPI_SUM,
         part->comm)

static void fill(const struct part *part) { part_put_values(part, (size_t)part->ranks); }

static bool right(const struct part *part) {
    return part_has_sums(part, (size_t)part->rank * (size_t)part->size / DOUBLE_BYTES, part->ranks);
}

WULF_COLLECTIVE("reduce_scatter",
                "MPI_Reduce_scatter_block: the sum of doubles over all ranks, a part for each",
                MESSAGE_MAX_BYTES / 16, call, start, DESCRIBED, fill, right, .pattern = "sum in parts",
                .size_step = DOUBLE_BYTES, .room = ROOM_EVERY_RANK)
