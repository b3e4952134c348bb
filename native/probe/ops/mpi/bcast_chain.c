/* A broadcast whose messages go from each rank to its neighbours in the order of the ranks alone: where
 * consecutive ranks are cabled to each other, no message goes through a switch. In pieces, so that all cables
 * carry some at the same time. */
#include "probe/mpi/collective.h"
#include "probe/mpi/link.h"

enum { PIECE = 16 << 10, TAG_PIECE = 200 };

/* From one neighbour to another (none: -1), piece by piece: the last one is on its way while the next is
 * received. */
static int pass(const struct part *part, int from, int to, int also) {
    MPI_Request sent[] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int code = MPI_SUCCESS;
    for (int at = 0; at < part->size && code == MPI_SUCCESS; at += PIECE) {
        const int bytes = part->size - at < PIECE ? part->size - at : PIECE;
        if (from >= 0)
            code = MPI_Recv(part->out + at, bytes, MPI_BYTE, from, TAG_PIECE, part->comm, MPI_STATUS_IGNORE);
        if (code == MPI_SUCCESS)
            code = MPI_Waitall(2, sent, MPI_STATUSES_IGNORE);
        if (code == MPI_SUCCESS && to >= 0)
            code = MPI_Isend(part->out + at, bytes, MPI_BYTE, to, TAG_PIECE, part->comm, &sent[0]);
        if (code == MPI_SUCCESS && also >= 0)
            code = MPI_Isend(part->out + at, bytes, MPI_BYTE, also, TAG_PIECE, part->comm, &sent[1]);
    }
    return code == MPI_SUCCESS ? MPI_Waitall(2, sent, MPI_STATUSES_IGNORE) : code;
}

static int chain(const struct part *part) {
    return pass(part, part->rank - 1, part->rank + 1 < part->ranks ? part->rank + 1 : -1, -1);
}

/* Both ways round a ring: half as many steps. The last of each half has nobody behind it. */
static int both_ways(const struct part *part) {
    const int half = part->ranks / 2;
    const int rank = part->rank;
    const int last = part->ranks - 1;
    if (rank == 0)
        return pass(part, -1, 1, last > 1 ? last : -1);
    if (rank <= half)
        return pass(part, rank - 1, rank < half ? rank + 1 : -1, -1);
    return pass(part, rank == last ? 0 : rank + 1, rank - 1 > half ? rank - 1 : -1, -1);
}

static void fill(const struct part *part) {
    if (part->rank == 0)
        part_put(part, part->out, 0, -1);
    else if (part->size > 0)
        part->out[0] = (unsigned char)~part->out[0];
}

static bool right(const struct part *part) { return part_has(part, part->out, 0, -1); }

static const struct collective CHAIN = {.call = chain, .fill = fill, .right = right};
static const struct collective BOTH = {.call = both_ways, .fill = fill, .right = right};

static int visit_chain(struct visit *visit, struct failure *failure) {
    return collective_visit(&CHAIN, WAY_BLOCKING, visit, failure);
}

static int visit_both(struct visit *visit, struct failure *failure) {
    return collective_visit(&BOTH, WAY_BLOCKING, visit, failure);
}

#define ALONG(ID, NAME, SUMMARY, VISIT)                                                                      \
    static const struct operation ID = {.name = NAME,                                                        \
                                        .summary = SUMMARY,                                                  \
                                        .link = LINK_MPI,                                                    \
                                        .group = true,                                                       \
                                        .pattern = "broadcast",                                              \
                                        .quantity = "common start to last exit",                             \
                                        .divisor = 1,                                                        \
                                        .min_size = 1,                                                       \
                                        .max_size = MESSAGE_MAX_BYTES,                                       \
                                        .moves_bytes = true,                                                 \
                                        .timing = TIMING_ITERATION,                                          \
                                        .tells_exits = true,                                                 \
                                        .initiate = VISIT,                                                   \
                                        .respond = VISIT}

ALONG(OF_CHAIN, "mpi_bcast_chain",
      "A broadcast from each rank to the next one, in pieces: along cables where consecutive ranks have one",
      visit_chain);
ALONG(OF_RING, "mpi_bcast_ring", "The same both ways round a ring: half as many steps", visit_both);

__attribute__((constructor)) static void register_operations(void) {
    operation_register(&OF_CHAIN);
    operation_register(&OF_RING);
}
