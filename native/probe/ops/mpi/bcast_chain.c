/* Broadcasts whose messages go along cables where ranks are placed as the cables are: from each rank to its
 * neighbours in the order of the ranks, or along the edges of a hypercube. No message goes through a switch
 * then. In pieces, so that all cables carry some at the same time. */
#include "probe/mpi/collective.h"
#include "probe/mpi/link.h"

enum { PIECE = 16 << 10, TAG_PIECE = 200, CHILDREN_MAX = 31 };

/* From one neighbour (none: -1) to others, piece by piece: the last one is on its way while the next is
 * received. */
static int pass(const struct part *part, int from, const int *to, int count) {
    MPI_Request sent[CHILDREN_MAX];
    int code = MPI_SUCCESS;
    for (int child = 0; child < count; child++)
        sent[child] = MPI_REQUEST_NULL;
    for (int at = 0; at < part->size && code == MPI_SUCCESS; at += PIECE) {
        const int bytes = part->size - at < PIECE ? part->size - at : PIECE;
        if (from >= 0)
            code = MPI_Recv(part->out + at, bytes, MPI_BYTE, from, TAG_PIECE, part->comm, MPI_STATUS_IGNORE);
        if (code == MPI_SUCCESS)
            code = MPI_Waitall(count, sent, MPI_STATUSES_IGNORE);
        for (int child = 0; child < count && code == MPI_SUCCESS; child++)
            code = MPI_Isend(part->out + at, bytes, MPI_BYTE, to[child], TAG_PIECE, part->comm, &sent[child]);
    }
    return code == MPI_SUCCESS ? MPI_Waitall(count, sent, MPI_STATUSES_IGNORE) : code;
}

static int chain(const struct part *part) {
    const int next = part->rank + 1;
    return pass(part, part->rank - 1, &next, next < part->ranks);
}

/* Both ways round a ring: half as many steps. The last of each half has nobody behind it. */
static int both_ways(const struct part *part) {
    const int half = part->ranks / 2;
    const int rank = part->rank;
    const int last = part->ranks - 1;
    if (rank == 0)
        return pass(part, -1, (const int[]){1, last}, last > 1 ? 2 : 1);
    if (rank <= half)
        return pass(part, rank - 1, (const int[]){rank + 1}, rank < half);
    return pass(part, rank == last ? 0 : rank + 1, (const int[]){rank - 1}, rank - 1 > half);
}

/* A binomial tree: each rank has its messages from that whose number lacks its lowest bit, which is its
 * neighbour in a hypercube; of the ranks that come after it those with the largest trees of their own are
 * first. */
static int tree(const struct part *part) {
    const int rank = part->rank;
    int children[CHILDREN_MAX];
    int count = 0;
    for (int bit = CHILDREN_MAX - 1; bit >= 0; bit--) {
        const unsigned child = (unsigned)rank | 1U << bit;
        const bool below = rank == 0 || 1U << bit < ((unsigned)rank & -(unsigned)rank);
        if (below && child < (unsigned)part->ranks)
            children[count++] = (int)child;
    }
    return pass(part, rank == 0 ? -1 : rank & (rank - 1), children, count);
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
static const struct collective TREE = {.call = tree, .fill = fill, .right = right};

static int visit_chain(struct visit *visit, struct failure *failure) {
    return collective_visit(&CHAIN, WAY_BLOCKING, visit, failure);
}

static int visit_both(struct visit *visit, struct failure *failure) {
    return collective_visit(&BOTH, WAY_BLOCKING, visit, failure);
}

static int visit_tree(struct visit *visit, struct failure *failure) {
    return collective_visit(&TREE, WAY_BLOCKING, visit, failure);
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
ALONG(
    OF_TREE, "mpi_bcast_tree",
    "The same along a binomial tree, whose edges are those of a hypercube: along cables where ranks are one",
    visit_tree);

__attribute__((constructor)) static void register_operations(void) {
    operation_register(&OF_CHAIN);
    operation_register(&OF_RING);
    operation_register(&OF_TREE);
}
