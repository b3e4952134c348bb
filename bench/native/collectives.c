/* A program that does nothing but one collective. Arguments: which, the bytes of it, how often. The root is
 * rank 0; sums are of doubles. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char **words) {
    int rank, ranks;
    MPI_Init(&count, &words);
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &ranks);
    const char *what = words[1];
    const int bytes = atoi(words[2]), doubles = bytes / 8;
    char *from = calloc((size_t)ranks, (size_t)bytes), *to = calloc((size_t)ranks, (size_t)bytes);
    for (int time = 0; time < atoi(words[3]); time++) {
        if (strcmp(what, "bcast") == 0)
            MPI_Bcast(from, bytes, MPI_BYTE, 0, world);
        else if (strcmp(what, "reduce") == 0)
            MPI_Reduce(from, to, doubles, MPI_DOUBLE, MPI_MAX, 0, world);
        else if (strcmp(what, "gather") == 0)
            MPI_Gather(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, 0, world);
        else if (strcmp(what, "scatter") == 0)
            MPI_Scatter(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, 0, world);
        else if (strcmp(what, "allreduce") == 0)
            MPI_Allreduce(from, to, doubles, MPI_DOUBLE, MPI_MAX, world);
        else if (strcmp(what, "allgather") == 0)
            MPI_Allgather(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, world);
        else if (strcmp(what, "alltoall") == 0)
            MPI_Alltoall(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, world);
        else if (strcmp(what, "reduce_scatter") == 0)
            MPI_Reduce_scatter_block(from, to, doubles, MPI_DOUBLE, MPI_MAX, world);
        else
            MPI_Abort(world, 1);
    }
    MPI_Finalize();
    return 0;
}
