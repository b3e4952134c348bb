/* What a call of MPI takes, in one rank: each loop many times, the median of its batches [ns]. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BATCHES = 41, CALLS = 20000 };

static int from[2], to[2], place;
static MPI_Request requests[2], kept[2];

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void reduce(void) { MPI_Allreduce(from, to, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF); }

static void message(void) {
    MPI_Isend(from, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &requests[0]);
    MPI_Recv(to, 1, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
}

static void both(void) {
    MPI_Irecv(to, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &requests[0]);
    MPI_Isend(from, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void persistent(void) {
    MPI_Startall(2, kept);
    MPI_Waitall(2, kept, MPI_STATUSES_IGNORE);
}

static void probe(void) { MPI_Iprobe(0, 1, MPI_COMM_SELF, &place, MPI_STATUS_IGNORE); }

static int by_size(const void *one, const void *other) {
    const double first = *(const double *)one, second = *(const double *)other;
    return (first > second) - (first < second);
}

static void measure(const char *name, void (*loop)(void), int calls) {
    double batches[BATCHES];
    for (int batch = 0; batch < BATCHES; batch++) {
        const double begin = now_ns();
        for (int round = 0; round < CALLS / calls; round++)
            loop();
        batches[batch] = (now_ns() - begin) / (CALLS / calls * calls);
    }
    qsort(batches, BATCHES, sizeof *batches, by_size);
    printf("%s %.2f\n", name, batches[BATCHES / 2]);
}

int main(int count, char **words) {
    MPI_Init(&count, &words);
    MPI_Recv_init(to, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &kept[0]);
    MPI_Send_init(from, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &kept[1]);
    measure("allreduce", reduce, 1);
    measure("isend+recv+wait", message, 3);
    measure("irecv+isend+waitall", both, 3);
    measure("startall+waitall", persistent, 2);
    measure("iprobe", probe, 1);
    MPI_Request_free(&kept[0]);
    MPI_Request_free(&kept[1]);
    MPI_Finalize();
    return 0;
}
