/* Broadcast from rank 0 to all others. */
#include "probe/mpi/collective.h"
#include "probe/mpi/described.h"

static int call(const struct part *part) { return MPI_Bcast(part->out, part->size, MPI_BYTE, 0, part->comm); }

static int start(const struct part *part, MPI_Request *request) {
    return MPI_Ibcast(part->out, part->size, MPI_BYTE, 0, part->comm, request);
}

DESCRIBE(Bcast, part->out, part->size, MPI_BYTE, 0, part->comm)

static void fill(const struct part *part) {
    if (part->rank == 0)
        part_put(part, part->out, 0, -1);
}

static bool right(const struct part *part) { return part_has(part, part->out, 0, -1); }

WULF_COLLECTIVE("bcast", "MPI_Bcast: a message from the first rank to all", MESSAGE_MAX_BYTES, call, start,
                DESCRIBED, fill, right, .pattern = "broadcast")
