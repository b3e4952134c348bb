/* Every rank exchanges messages with both neighbours of a ring, as programs with a 1-D decomposition do. */
#include "probe/mpi/loops.h"

enum { TO_THE_LEFT = TAG_DATA, TO_THE_RIGHT = 101, EXCHANGES = 4 };

struct ring {
    int left, right;
    unsigned char *from_left, *from_right;
};

static inline int exchange(struct mpi_side *side) {
    const struct ring *ring = side->state;
    const int size = side->size;
    const MPI_Comm comm = side->link.comm;
    MPI_Request requests[EXCHANGES];
    int code = MPI_Irecv(ring->from_left, size, MPI_BYTE, ring->left, TO_THE_RIGHT, comm, &requests[0]);
    if (code == MPI_SUCCESS)
        code = MPI_Irecv(ring->from_right, size, MPI_BYTE, ring->right, TO_THE_LEFT, comm, &requests[1]);
    if (code == MPI_SUCCESS)
        code = MPI_Isend(side->out, size, MPI_BYTE, ring->left, TO_THE_LEFT, comm, &requests[2]);
    if (code == MPI_SUCCESS)
        code = MPI_Isend(side->out, size, MPI_BYTE, ring->right, TO_THE_RIGHT, comm, &requests[3]);
    return code == MPI_SUCCESS ? MPI_Waitall(EXCHANGES, requests, MPI_STATUSES_IGNORE) : code;
}

static struct ring make(const struct visit *visit) {
    const struct mpi_link *link = visit->link;
    int rank = 0;
    int ranks = 1;
    MPI_Comm_rank(link->comm, &rank);
    MPI_Comm_size(link->comm, &ranks);
    return (struct ring){.left = (rank + ranks - 1) % ranks,
                         .right = (rank + 1) % ranks,
                         .from_left = visit->spare,
                         .from_right = visit->spare + visit->size};
}

static int check(struct visit *visit, const struct ring *ring, struct failure *failure) {
    const bool right = payload_matches(ring->from_left, 0, visit->size, visit->seed, visit->number) &&
                       payload_matches(ring->from_right, 0, visit->size, visit->seed, visit->number);
    return mpi_agree(visit, right, failure);
}

static int initiate(struct visit *visit, struct failure *failure) {
    struct ring ring = make(visit);
    struct mpi_side side = mpi_side(visit, &ring);
    if (mpi_initiate(visit, &side, exchange, failure) != 0)
        return -1;
    return check(visit, &ring, failure);
}

static int respond(struct visit *visit, struct failure *failure) {
    struct ring ring = make(visit);
    struct mpi_side side = mpi_side(visit, &ring);
    mpi_fill(visit);
    if (mpi_respond(visit, &side, exchange, failure) != 0)
        return -1;
    return check(visit, &ring, failure);
}

static const struct operation OPERATION = {
    .name = "mpi_ring",
    .link = LINK_MPI,
    .group = true,
    .pattern = "ring exchange",
    .quantity = "exchange with both neighbours",
    .divisor = 1,
    .moves_bytes = true,
    .room = ROOM_EVERY_RANK, /* of two at least */
    .max_size = MESSAGE_MAX_BYTES / 16,
    .summary = "Every rank sends to both neighbours of a ring and receives from both (MPI_Isend, MPI_Irecv)",
    .initiate = initiate,
    .respond = respond,
};
WULF_OPERATION(OPERATION)
