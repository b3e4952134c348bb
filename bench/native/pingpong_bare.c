/* The bare loop that the probe is compared with: MPI_Send, MPI_Recv, a clock, a median; nothing of wulf's.
 *
 *     mpirun -np 2 pingpong_bare ITERATIONS SIZE…
 *
 * Prints one JSON object: size [B] to the median half round trip [s]. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void initiate(void *buffer, int size, double *times_s, int iterations) {
    double before = now_s();
    for (int i = 0; i < iterations; i++) {
        MPI_Send(buffer, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(buffer, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        const double after = now_s();
        times_s[i] = after - before;
        before = after;
    }
}

static void respond(void *buffer, int size, int iterations) {
    for (int i = 0; i < iterations; i++) {
        MPI_Recv(buffer, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(buffer, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv) {
    int rank = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const int iterations = argc > 1 ? atoi(argv[1]) : 0;
    if (iterations < 1 || argc < 3) {
        fprintf(stderr, "usage: pingpong_bare ITERATIONS SIZE...\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    double *times_s = calloc((size_t)iterations, sizeof *times_s);
    for (int a = 2; a < argc; a++) {
        const int size = atoi(argv[a]);
        void *buffer = NULL;
        if (times_s == NULL || size < 0 || posix_memalign(&buffer, 4096, (size_t)size + 1) != 0)
            MPI_Abort(MPI_COMM_WORLD, 1);
        memset(buffer, rank, (size_t)size + 1);
        for (int round = 0; round < 2; round++) { /* the first one warms up */
            if (rank == 0)
                initiate(buffer, size, times_s, iterations);
            else
                respond(buffer, size, iterations);
        }
        qsort(times_s, (size_t)iterations, sizeof *times_s, ascending);
        if (rank == 0)
            printf("%s\"%d\": %.10g", a == 2 ? "{" : ", ", size, times_s[iterations / 2] / 2);
        free(buffer);
    }
    if (rank == 0)
        printf("}\n");
    free(times_s);
    MPI_Finalize();
    return 0;
}
