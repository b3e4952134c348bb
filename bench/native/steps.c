/* Programs of an iteration that is known, for bench/accuracy.py: steps PROGRAM ITERATIONS. What they compute
 * is work, not a wait: what takes the processor from them makes them longer. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A sum that a processor of 2020 adds a microsecond at. */
enum { A_MICROSECOND = 800, LARGEST = 1 << 20, TOKEN = 1 << 10, HALO = 1 << 14, SMALL_HALO = 1 << 11 };
enum { PART = 1 << 17, BLOCK = 1 << 16 };
static char out[2][LARGEST], in[2][LARGEST];
static int rank, ranks, before, after;

static double work(int microseconds) {
    volatile double sum = 0;
    for (long i = 0; i < (long)microseconds * A_MICROSECOND; i++)
        sum = sum + 1;
    return sum;
}

/* The rank that has the token works, then gives it on. */
static void ring(void) {
    if (rank > 0)
        MPI_Recv(in[0], TOKEN, MPI_BYTE, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    work(30);
    MPI_Send(out[0], TOKEN, MPI_BYTE, after, 0, MPI_COMM_WORLD);
    if (rank == 0)
        MPI_Recv(in[0], TOKEN, MPI_BYTE, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void exchange(int bytes) {
    MPI_Request requests[4];
    MPI_Irecv(in[0], bytes, MPI_BYTE, before, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(in[1], bytes, MPI_BYTE, after, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(out[0], bytes, MPI_BYTE, after, 0, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(out[1], bytes, MPI_BYTE, before, 1, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
}

static void stencil(void) {
    work(200);
    exchange(HALO);
}

/* As conjugate gradients: sums over all, neighbours; ranks are not equally loaded. */
static void solver(void) {
    double sum = 0;
    double one = 1;
    exchange(SMALL_HALO);
    work(rank % 2 == 0 ? 80 : 100);
    MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    work(30);
    MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

/* As a Fourier transform. */
static void transpose(void) {
    work(500);
    MPI_Alltoall(out[0], PART, MPI_BYTE, in[0], PART, MPI_BYTE, MPI_COMM_WORLD);
}

/* Messages just above the eager limit, several each way at once. */
static void swap(void) {
    MPI_Request requests[4];
    double sum = 0;
    double one = 1;
    for (int k = 0; k < 2; k++) {
        MPI_Irecv(in[k], BLOCK, MPI_BYTE, before, k, MPI_COMM_WORLD, &requests[k]);
        MPI_Isend(out[k], BLOCK, MPI_BYTE, after, k, MPI_COMM_WORLD, &requests[2 + k]);
    }
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static const struct {
    const char *name;
    void (*step)(void);
} PROGRAMS[] = {
    {"ring", ring}, {"stencil", stencil}, {"solver", solver}, {"transpose", transpose}, {"swap", swap}};

int main(int count, char **words) {
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    before = (rank + ranks - 1) % ranks;
    after = (rank + 1) % ranks;
    for (size_t place = 0; count > 2 && place < sizeof PROGRAMS / sizeof *PROGRAMS; place++)
        for (int i = 0; strcmp(PROGRAMS[place].name, words[1]) == 0 && i < atoi(words[2]); i++)
            PROGRAMS[place].step();
    MPI_Finalize();
    return 0;
}
