/* A message from every rank to each, each with a length and a place of its own. */
#include "probe/mpi/collective.h"
#include "probe/mpi/described.h"

static int call(const struct part *part) {
    return MPI_Alltoallv(part->out, part->counts, part->places, MPI_BYTE, part->in, part->counts,
                         part->places, MPI_BYTE, part->comm);
}

DESCRIBE(Alltoallv, part->out, part->counts, part->places, MPI_BYTE, part->in, part->counts, part->places,
         MPI_BYTE, part->comm)

static void fill(const struct part *part) {
    for (int rank = 0; rank < part->ranks; rank++)
        part_put(part, part->out + part->places[rank], part->rank, rank);
}

static bool right(const struct part *part) {
    for (int rank = 0; rank < part->ranks; rank++)
        if (!part_has(part, part->in + part->places[rank], rank, part->rank))
            return false;
    return true;
}

WULF_COLLECTIVE("alltoallv",
                "MPI_Alltoallv: a message from every rank to each, each with its length and place",
                MESSAGE_MAX_BYTES / 16, call, NULL, DESCRIBED, fill, right, .pattern = "all to all",
                .room = ROOM_EVERY_RANK)
