/* A message from the first rank to each. */
#include "probe/mpi/collective.h"

static int call(const struct part *part) {
    return MPI_Scatter(part->out, part->size, MPI_BYTE, part->in, part->size, MPI_BYTE, 0, part->comm);
}

static void fill(const struct part *part) {
    if (part->rank != 0)
        return;
    for (int rank = 0; rank < part->ranks; rank++)
        part_put(part, part->out + part->places[rank], part->rank, rank);
}

static bool right(const struct part *part) { return part_has(part, part->in, 0, part->rank); }

WULF_COLLECTIVE("mpi_scatter", call, fill, right, .pattern = "scatter", .moves_bytes = true,
                .room = ROOM_EVERY_RANK, .max_size = MESSAGE_MAX_BYTES / 16,
                .summary = "MPI_Scatter: a message from the first rank to each")
