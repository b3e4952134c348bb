/* Broadcast from rank 0 to all others. */
#include "probe/mpi/collective.h"

static int call(const struct part *part) { return MPI_Bcast(part->out, part->size, MPI_BYTE, 0, part->comm); }

static void fill(const struct part *part) {
    if (part->rank == 0)
        part_put(part, part->out, 0, -1);
}

static bool right(const struct part *part) { return part_has(part, part->out, 0, -1); }

WULF_COLLECTIVE("mpi_bcast", call, fill, right, .pattern = "broadcast", .moves_bytes = true,
                .max_size = MESSAGE_MAX_BYTES, .summary = "MPI_Bcast: a message from the first rank to all")
