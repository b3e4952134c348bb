/* A message from the first rank to each. */
#include "probe/mpi/collective.h"
#include "probe/mpi/described.h"

static int call(const struct part *part) {
    return MPI_Scatter(part->out, part->size, MPI_BYTE, part->in, part->size, MPI_BYTE, 0, part->comm);
}

static int start(const struct part *part, MPI_Request *request) {
    return MPI_Iscatter(part->out, part->size, MPI_BYTE, part->in, part->size, MPI_BYTE, 0, part->comm,
                        request);
}

DESCRIBE(Scatter, part->out, part->size, MPI_BYTE, part->in, part->size, MPI_BYTE, 0, part->comm)

static void fill(const struct part *part) {
    if (part->rank != 0)
        return;
    for (int rank = 0; rank < part->ranks; rank++)
        part_put(part, part->out + part->places[rank], part->rank, rank);
}

static bool right(const struct part *part) { return part_has(part, part->in, 0, part->rank); }

WULF_COLLECTIVE("scatter", "MPI_Scatter: a message from the first rank to each", MESSAGE_MAX_BYTES / 16, call,
                start, DESCRIBED, fill, right, .pattern = "scatter", .room = ROOM_EVERY_RANK)
