/* A message from every rank to the first. */
#include "probe/mpi/collective.h"
#include "probe/mpi/described.h"

static int call(const struct part *part) {
    return MPI_Gather(part->out, part->size, MPI_BYTE, part->in, part->size, MPI_BYTE, 0, part->comm);
}

static int start(const struct part *part, MPI_Request *request) {
    return MPI_Igather(part->out, part->size, MPI_BYTE, part->in, part->size, MPI_BYTE, 0, part->comm,
                       request);
}

DESCRIBE(Gather, part->out, part->size, MPI_BYTE, part->in, part->size, MPI_BYTE, 0, part->comm)

static void fill(const struct part *part) { part_put(part, part->out, part->rank, -1); }

static bool right(const struct part *part) {
    if (part->rank != 0)
        return true;
    for (int rank = 0; rank < part->ranks; rank++)
        if (!part_has(part, part->in + part->places[rank], rank, -1))
            return false;
    return true;
}

WULF_COLLECTIVE("gather", "MPI_Gather: a message from every rank to the first", MESSAGE_MAX_BYTES / 16, call,
                start, DESCRIBED, fill, right, .pattern = "gather", .room = ROOM_EVERY_RANK)
