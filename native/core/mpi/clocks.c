#include "core/mpi/clocks.h"

#include "core/clock.h"

enum { TAG_CLOCK = 5, PINGS = 10 };

/* Tell the other rank, again and again, what time it is on rank 0. */
static int tell(MPI_Comm comm, int peer, int64_t ahead_ns) {
    int code = MPI_SUCCESS;
    for (int i = 0; i < PINGS && code == MPI_SUCCESS; i++) {
        char asked = 0;
        code = MPI_Recv(&asked, 1, MPI_CHAR, peer, TAG_CLOCK, comm, MPI_STATUS_IGNORE);
        const int64_t now = (int64_t)clock_now_ns() - ahead_ns;
        if (code == MPI_SUCCESS)
            code = MPI_Send(&now, 1, MPI_INT64_T, peer, TAG_CLOCK, comm);
    }
    return code;
}

static int ask(MPI_Comm comm, int peer, int64_t *ahead_ns) {
    int64_t shortest = INT64_MAX;
    int code = MPI_SUCCESS;
    for (int i = 0; i < PINGS && code == MPI_SUCCESS; i++) {
        const char question = 1;
        int64_t told = 0;
        const int64_t begin = (int64_t)clock_now_ns();
        code = MPI_Send(&question, 1, MPI_CHAR, peer, TAG_CLOCK, comm);
        if (code == MPI_SUCCESS)
            code = MPI_Recv(&told, 1, MPI_INT64_T, peer, TAG_CLOCK, comm, MPI_STATUS_IGNORE);
        const int64_t end = (int64_t)clock_now_ns();
        if (end - begin < shortest) {
            shortest = end - begin;
            *ahead_ns = begin + shortest / 2 - told;
        }
    }
    return code;
}

int clocks_compare(MPI_Comm comm, int64_t *ahead_ns) {
    int rank = 0;
    int ranks = 0;
    int code = MPI_Comm_rank(comm, &rank);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_size(comm, &ranks);
    *ahead_ns = 0;
    for (int known = 1; known < ranks && code == MPI_SUCCESS; known *= 2) {
        if (rank < known && rank + known < ranks)
            code = tell(comm, rank + known, *ahead_ns);
        else if (rank >= known && rank < 2 * known)
            code = ask(comm, rank - known, ahead_ns);
    }
    return code;
}
