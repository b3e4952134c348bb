/* Blocking ping-pong between two ranks: MPI_Send and MPI_Recv, the message bounces. */
#include "core/clock.h"
#include "probe/mpi/link.h"
#include "probe/operation.h"
#include "probe/watchdog.h"

/* There and back again. Inlined: nothing but the two calls is in the timed loop. */
static inline int bounce(const struct mpi_link *link, void *buffer, int size) {
    const int code = MPI_Send(buffer, size, MPI_BYTE, link->peer, TAG_DATA, link->comm);
    if (code != MPI_SUCCESS)
        return code;
    return MPI_Recv(buffer, size, MPI_BYTE, link->peer, TAG_DATA, link->comm, MPI_STATUS_IGNORE);
}

static int initiate(struct visit *visit, struct failure *failure) {
    const struct mpi_link link = *(const struct mpi_link *)visit->link;
    void *const buffer = visit->buffer;
    const int size = (int)visit->size;
    const uint64_t iterations = visit->iterations;
    uint64_t *const times_ns = visit->times_ns;

    int code = bounce(&link, buffer, size); /* the first one finds cold caches and a busy responder */
    const uint64_t begin = clock_now_ns();
    uint64_t before = begin;
    for (uint64_t i = 0; i < iterations && code == MPI_SUCCESS; i++) {
        code = bounce(&link, buffer, size);
        watchdog_beat();
        if (times_ns != NULL) {
            const uint64_t now = clock_now_ns();
            times_ns[i] = now - before;
            before = now;
        }
    }
    visit->total_ns = clock_now_ns() - begin;
    visit->timed = iterations;
    return code == MPI_SUCCESS ? 0 : mpi_failed(&link, code, failure);
}

static int respond(struct visit *visit, struct failure *failure) {
    const struct mpi_link link = *(const struct mpi_link *)visit->link;
    void *const buffer = visit->buffer;
    const int size = (int)visit->size;
    const uint64_t iterations = visit->iterations + 1;
    int code = MPI_SUCCESS;
    for (uint64_t i = 0; i < iterations && code == MPI_SUCCESS; i++) {
        code = MPI_Recv(buffer, size, MPI_BYTE, link.peer, TAG_DATA, link.comm, MPI_STATUS_IGNORE);
        if (code == MPI_SUCCESS)
            code = MPI_Send(buffer, size, MPI_BYTE, link.peer, TAG_DATA, link.comm);
        watchdog_beat();
    }
    return code == MPI_SUCCESS ? 0 : mpi_failed(&link, code, failure);
}

static const struct operation OPERATION = {
    .name = "mpi_pingpong",
    .link = LINK_MPI,
    .pattern = "ping-pong",
    .quantity = "half round trip",
    .divisor = 2,
    .moves_bytes = true,
    .usual = 1,
    .echoes = true,
    .max_size = MESSAGE_MAX_BYTES,
    .summary = "Blocking MPI_Send and MPI_Recv between two ranks",
    .initiate = initiate,
    .respond = respond,
};
WULF_OPERATION(OPERATION)
