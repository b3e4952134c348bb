/* Between a program and its MPI library (LD_PRELOAD): a broadcast that takes so
 * long, of which OVERLAP percent go on without anybody calling MPI. */
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

static const long long LASTS_NS = 300000;

static long long begun_ns;

static long long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void wait_until(long long end_ns) {
    while (now_ns() < end_ns)
        continue;
}

int MPI_Ibcast(void *message, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *request) {
    begun_ns = now_ns();
    return PMPI_Ibcast(message, count, type, root, comm, request);
}

int MPI_Wait(MPI_Request *request, MPI_Status *status) {
    if (begun_ns > 0) {
        const long long alone_ns = LASTS_NS * atoi(getenv("OVERLAP")) / 100;
        wait_until(begun_ns + alone_ns);
        wait_until(now_ns() + LASTS_NS - alone_ns);
        begun_ns = 0;
    }
    return PMPI_Wait(request, status);
}
