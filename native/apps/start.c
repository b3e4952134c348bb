/* wulf-start: an MPI job that does nothing but begin and end, as long as it takes to start one. What the
 * launcher takes is the run time of the command; this program says its own part. */
#include <mpi.h>
#include <stdio.h>

#include "apps/account.h"
#include "core/clock.h"

int main(int argc, char **argv) {
    const uint64_t begin_ns = clock_now_ns();
    int code = EXIT_NOT_RIGHT;
    if (!application_begin(NULL, 0, &argc, &argv, "an MPI job that begins and ends: how long that takes",
                           &code))
        return code;
    double own[] = {(double)(clock_now_ns() - begin_ns) / 1e9, 0};
    double most[] = {0, 0};
    int rank = 0;
    int ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const uint64_t first_ns = clock_now_ns();
    /* The first messages make the connections. */
    int said = MPI_Barrier(MPI_COMM_WORLD);
    own[1] = (double)(clock_now_ns() - first_ns) / 1e9;
    if (said == MPI_SUCCESS)
        said = MPI_Reduce(own, most, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("program start\nranks %d\ninit_s %.6f\nfirst_barrier_s %.6f\nrun_time_s %.6f\nresult %s\n",
               ranks, most[0], most[1], (double)(clock_now_ns() - begin_ns) / 1e9,
               said == MPI_SUCCESS ? "right" : "wrong");
    MPI_Finalize();
    return said == MPI_SUCCESS ? EXIT_RIGHT : EXIT_NOT_RIGHT;
}
