/* Collectives, and what Open MPI counts of the messages that they are made of (with pml_monitoring_enable 1).
 * Reads lines COLLECTIVE BEGUN ROOT BYTES [SIZES...] from a file; each rank prints LINE
 * FROM>TO:MESSAGES:BYTES for everybody to whom it sent. Sums are of doubles, all else of bytes. Arguments:
 * the file. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RANKS = 64, MOST_BYTES = 4 << 20 };

struct call {
    char name[32];
    int begun, root, bytes;
    int sizes[MOST_RANKS];
};

static int rank, ranks;
static char from[MOST_BYTES], to[MOST_BYTES];

static int is(const struct call *one, const char *name) { return strcmp(one->name, name) == 0; }

#define EITHER(BLOCKING, BEGUN, ...)                                                                         \
    (one->begun ? MPI_##BEGUN(__VA_ARGS__, MPI_COMM_WORLD, &request)                                         \
                : MPI_##BLOCKING(__VA_ARGS__, MPI_COMM_WORLD))

static void make(const struct call *one) {
    const int n = one->bytes, doubles = n / 8, root = one->root;
    int counts[MOST_RANKS], places[MOST_RANKS] = {0};
    MPI_Request request = MPI_REQUEST_NULL;
    for (int other = 0; other < ranks; other++) {
        counts[other] = one->sizes[other] / (is(one, "reduce_scatter") ? 8 : 1);
        if (other + 1 < ranks)
            places[other + 1] = places[other] + counts[other];
    }
    if (is(one, "barrier"))
        one->begun ? MPI_Ibarrier(MPI_COMM_WORLD, &request) : MPI_Barrier(MPI_COMM_WORLD);
    else if (is(one, "bcast"))
        EITHER(Bcast, Ibcast, from, n, MPI_BYTE, root);
    else if (is(one, "reduce"))
        EITHER(Reduce, Ireduce, from, to, doubles, MPI_DOUBLE, MPI_SUM, root);
    else if (is(one, "allreduce"))
        EITHER(Allreduce, Iallreduce, from, to, doubles, MPI_DOUBLE, MPI_SUM);
    else if (is(one, "gather"))
        EITHER(Gather, Igather, from, n, MPI_BYTE, to, n, MPI_BYTE, root);
    else if (is(one, "gatherv"))
        EITHER(Gatherv, Igatherv, from, counts[rank], MPI_BYTE, to, counts, places, MPI_BYTE, root);
    else if (is(one, "scatter"))
        EITHER(Scatter, Iscatter, from, n, MPI_BYTE, to, n, MPI_BYTE, root);
    else if (is(one, "scatterv"))
        EITHER(Scatterv, Iscatterv, from, counts, places, MPI_BYTE, to, counts[rank], MPI_BYTE, root);
    else if (is(one, "allgather"))
        EITHER(Allgather, Iallgather, from, n, MPI_BYTE, to, n, MPI_BYTE);
    else if (is(one, "allgatherv"))
        EITHER(Allgatherv, Iallgatherv, from, counts[rank], MPI_BYTE, to, counts, places, MPI_BYTE);
    else if (is(one, "alltoall"))
        EITHER(Alltoall, Ialltoall, from, n, MPI_BYTE, to, n, MPI_BYTE);
    else if (is(one, "reduce_scatter"))
        EITHER(Reduce_scatter, Ireduce_scatter, from, to, counts, MPI_DOUBLE, MPI_SUM);
    else if (is(one, "reduce_scatter_block"))
        EITHER(Reduce_scatter_block, Ireduce_scatter_block, from, to, doubles, MPI_DOUBLE, MPI_SUM);
    else if (is(one, "scan"))
        EITHER(Scan, Iscan, from, to, doubles, MPI_DOUBLE, MPI_SUM);
    else if (is(one, "exscan"))
        EITHER(Exscan, Iexscan, from, to, doubles, MPI_DOUBLE, MPI_SUM);
    else
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int count, char **words) {
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    FILE *file = fopen(words[1], "r");
    struct call one = {0};
    while (fscanf(file, "%31s %d %d %d", one.name, &one.begun, &one.root, &one.bytes) == 4) {
        for (int other = 0; other < ranks && fscanf(file, "%d", &one.sizes[other]) == 1;)
            other++;
        make(&one);
    }
    MPI_Finalize();
    return 0;
}
