/* A message from every rank to the first, each with a length and a place of its own. */
#include "probe/mpi/collective.h"
#include "probe/mpi/described.h"

static int call(const struct part *part) {
    return MPI_Gatherv(part->out, part->size, MPI_BYTE, part->in, part->counts, part->places, MPI_BYTE, 0,
                       part->comm);
}

DESCRIBE(Gatherv, part->out, part->size, MPI_BYTE, part->in, part->counts, part->places, MPI_BYTE, 0,
         part->comm)

static void fill(const struct part *part) { part_put(part, part->out, part->rank, -1); }

static bool right(const struct part *part) {
    if (part->rank != 0)
        return true;
    for (int rank = 0; rank < part->ranks; rank++)
        if (!part_has(part, part->in + part->places[rank], rank, -1))
            return false;
    return true;
}

WULF_COLLECTIVE("gatherv",
                "MPI_Gatherv: a message from every rank to the first, each with its length and place",
                MESSAGE_MAX_BYTES / 16, call, NULL, DESCRIBED, fill, right, .pattern = "gather",
                .room = ROOM_EVERY_RANK)
