/* A message from every rank to all. */
#include "probe/mpi/collective.h"
#include "probe/mpi/described.h"

static int call(const struct part *part) {
    return MPI_Allgather(part->out, part->size, MPI_BYTE, part->in, part->size, MPI_BYTE, part->comm);
}

static int start(const struct part *part, MPI_Request *request) {
    return MPI_Iallgather(part->out, part->size, MPI_BYTE, part->in, part->size, MPI_BYTE, part->comm,
                          request);
}

DESCRIBE(Allgather, part->out, part->size, MPI_BYTE, part->in, part->size, MPI_BYTE, part->comm)

static void fill(const struct part *part) { part_put(part, part->out, part->rank, -1); }

static bool right(const struct part *part) {
    for (int rank = 0; rank < part->ranks; rank++)
        if (!part_has(part, part->in + part->places[rank], rank, -1))
            return false;
    return true;
}

WULF_COLLECTIVE("allgather", "MPI_Allgather: a message from every rank to all", MESSAGE_MAX_BYTES / 16, call,
                start, DESCRIBED, fill, right, .pattern = "gather for all", .room = ROOM_EVERY_RANK)
