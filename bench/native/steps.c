/* Programs of known steps, for bench/accuracy.py: what they compute is a wait on the clock, so that a trace
 * of them can be written without running them.
 *
 * steps PROGRAM ITERATIONS prints the time of all iterations on the slowest rank [ns], after some to warm up.
 */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WARM_UP = 20, LARGEST = 1 << 20 };
static char out[LARGEST], in[LARGEST];

static int64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void compute(int64_t ns) {
    for (const int64_t end = now_ns() + ns; now_ns() < end;) {
    }
}

static void ping_pong(int rank) {
    compute(30000);
    if (rank == 0) {
        MPI_Send(out, 1024, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(in, 1024, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(in, 1024, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(out, 1024, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
}

static void exchange(int rank, int bytes) {
    MPI_Request requests[2];
    MPI_Irecv(in, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void halo(int rank) {
    compute(200000);
    exchange(rank, 16384);
}

static void transpose(int rank) {
    compute(500000);
    exchange(rank, 262144);
}

static void solver(int rank) {
    double sum = 0, one = 1;
    compute(rank == 0 ? 100000 : 130000);
    MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    exchange(rank, 2048);
}

static const struct {
    const char *name;
    void (*step)(int rank);
} PROGRAMS[] = {{"ping-pong", ping_pong}, {"halo", halo}, {"transpose", transpose}, {"solver", solver}};

int main(int count, char **words) {
    int rank = 0;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const int iterations = count > 2 ? atoi(words[2]) : 0;
    for (size_t place = 0; count > 2 && place < sizeof PROGRAMS / sizeof *PROGRAMS; place++) {
        if (strcmp(PROGRAMS[place].name, words[1]) != 0)
            continue;
        int64_t begin = 0, slowest = 0;
        for (int i = -WARM_UP; i < iterations; i++) {
            if (i == 0) {
                MPI_Barrier(MPI_COMM_WORLD);
                begin = now_ns();
            }
            PROGRAMS[place].step(rank);
        }
        int64_t took = now_ns() - begin;
        MPI_Reduce(&took, &slowest, 1, MPI_INT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
        if (rank == 0)
            printf("took_ns %lld\n", (long long)slowest);
    }
    MPI_Finalize();
    return 0;
}
