/* A message to both neighbours of a ring, and from both, as one collective. */
#include "probe/mpi/collective.h"
#include "probe/mpi/described.h"

/* The ranks in a ring; made once, and there until the end. */
static MPI_Comm ring = MPI_COMM_NULL;

static int call(const struct part *part) {
    return MPI_Neighbor_allgather(part->out, part->size, MPI_BYTE, part->in, part->size, MPI_BYTE, ring);
}

static int start(const struct part *part, MPI_Request *request) {
    return MPI_Ineighbor_allgather(part->out, part->size, MPI_BYTE, part->in, part->size, MPI_BYTE, ring,
                                   request);
}

DESCRIBE(Neighbor_allgather, part->out, part->size, MPI_BYTE, part->in, part->size, MPI_BYTE, ring)

static void fill(const struct part *part) {
    if (ring == MPI_COMM_NULL)
        MPI_Cart_create(part->comm, 1, (const int[]){part->ranks}, (const int[]){1}, 0, &ring);
    part_put(part, part->out, part->rank, -1);
}

static bool right(const struct part *part) {
    const int left = (part->rank + part->ranks - 1) % part->ranks;
    return part_has(part, part->in + part->places[0], left, -1) &&
           part_has(part, part->in + part->places[1], (part->rank + 1) % part->ranks, -1);
}

WULF_COLLECTIVE("neighbor_allgather",
                "MPI_Neighbor_allgather: a message to both neighbours of a ring, and one from each",
                MESSAGE_MAX_BYTES / 16, call, start, DESCRIBED, fill, right, .pattern = "ring exchange",
                .room = ROOM_EVERY_RANK)
