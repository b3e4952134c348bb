/* A message from every rank to the first. */
#include "probe/mpi/collective.h"

static int call(const struct part *part) {
    return MPI_Gather(part->out, part->size, MPI_BYTE, part->in, part->size, MPI_BYTE, 0, part->comm);
}

static void fill(const struct part *part) { part_put(part, part->out, part->rank, -1); }

static bool right(const struct part *part) {
    if (part->rank != 0)
        return true;
    for (int rank = 0; rank < part->ranks; rank++)
        if (!part_has(part, part->in + part->places[rank], rank, -1))
            return false;
    return true;
}

WULF_COLLECTIVE("mpi_gather", call, fill, right, .pattern = "gather", .moves_bytes = true,
                .room = ROOM_EVERY_RANK, .max_size = MESSAGE_MAX_BYTES / 16,
                .summary = "MPI_Gather: a message from every rank to the first")
