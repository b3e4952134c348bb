/* Broadcast from rank 0 to all others: MPI_Bcast, and the barrier that tells when all have it. */
#include "core/clock.h"
#include "probe/mpi/link.h"
#include "probe/operation.h"
#include "probe/watchdog.h"

/* Without the barrier the root would run ahead: it has sent long before the last one has received. */
static inline int broadcast(const struct mpi_link *link, void *buffer, int size) {
    const int code = MPI_Bcast(buffer, size, MPI_BYTE, 0, link->comm);
    return code == MPI_SUCCESS ? MPI_Barrier(link->comm) : code;
}

static int initiate(struct visit *visit, struct failure *failure) {
    const struct mpi_link link = *(const struct mpi_link *)visit->link;
    int code = broadcast(&link, visit->buffer, (int)visit->size); /* finds cold caches */
    const uint64_t begin = clock_now_ns();
    uint64_t before = begin;
    for (uint64_t i = 0; i < visit->iterations && code == MPI_SUCCESS; i++) {
        code = broadcast(&link, visit->buffer, (int)visit->size);
        watchdog_beat();
        if (visit->times_ns != NULL) {
            const uint64_t now = clock_now_ns();
            visit->times_ns[i] = now - before;
            before = now;
        }
    }
    visit->total_ns = clock_now_ns() - begin;
    visit->timed = visit->iterations;
    return code == MPI_SUCCESS ? 0 : mpi_failed(&link, code, failure);
}

static int respond(struct visit *visit, struct failure *failure) {
    const struct mpi_link link = *(const struct mpi_link *)visit->link;
    int code = MPI_SUCCESS;
    for (uint64_t i = 0; i < visit->iterations + 1 && code == MPI_SUCCESS; i++) {
        code = broadcast(&link, visit->buffer, (int)visit->size);
        watchdog_beat();
    }
    return code == MPI_SUCCESS ? 0 : mpi_failed(&link, code, failure);
}

static const struct operation OPERATION = {
    .name = "mpi_bcast",
    .link = LINK_MPI,
    .group = true,
    .pattern = "broadcast",
    .quantity = "broadcast and barrier",
    .divisor = 1,
    .moves_bytes = true,
    .max_size = MESSAGE_MAX_BYTES,
    .summary = "MPI_Bcast from the first rank to all, and MPI_Barrier, which ends when all have it",
    .initiate = initiate,
    .respond = respond,
};
WULF_OPERATION(OPERATION)
