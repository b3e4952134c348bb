/* A message from the first rank to each, each with a length and a place of its own. */
#include "probe/mpi/collective.h"
#include "probe/mpi/described.h"

static int call(const struct part *part) {
    return MPI_Scatterv(part->out, part->counts, part->places, MPI_BYTE, part->in, part->size, MPI_BYTE, 0,
                        part->comm);
}

DESCRIBE(Scatterv, part->out, part->counts, part->places, MPI_BYTE, part->in, part->size, MPI_BYTE, 0,
         part->comm)

static void fill(const struct part *part) {
    if (part->rank != 0)
        return;
    for (int rank = 0; rank < part->ranks; rank++)
        part_put(part, part->out + part->places[rank], part->rank, rank);
}

static bool right(const struct part *part) { return part_has(part, part->in, 0, part->rank); }

WULF_COLLECTIVE("scatterv",
                "MPI_Scatterv: a message from the first rank to each, each with its length and place",
                MESSAGE_MAX_BYTES / 16, call, NULL, DESCRIBED, fill, right, .pattern = "scatter",
                .room = ROOM_EVERY_RANK)
