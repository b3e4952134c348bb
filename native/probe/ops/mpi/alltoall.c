/* A message from every rank to each. */
#include "probe/mpi/collective.h"
#include "probe/mpi/described.h"

static int call(const struct part *part) {
    return MPI_Alltoall(part->out, part->size, MPI_BYTE, part->in, part->size, MPI_BYTE, part->comm);
}

static int start(const struct part *part, MPI_Request *request) {
    return MPI_Ialltoall(part->out, part->size, MPI_BYTE, part->in, part->size, MPI_BYTE, part->comm,
                         request);
}

DESCRIBE(Alltoall, part->out, part->size, MPI_BYTE, part->in, part->size, MPI_BYTE, part->comm)

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

WULF_COLLECTIVE("alltoall", "MPI_Alltoall: a message from every rank to each", MESSAGE_MAX_BYTES / 16, call,
                start, DESCRIBED, fill, right, .pattern = "all to all", .room = ROOM_EVERY_RANK)
