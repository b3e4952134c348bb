/* Bandwidth in both directions at once: both ranks have a window of messages on their way to each other, and
 * begin the next one when all of it has arrived. */
#include "probe/mpi/area.h"
#include "probe/mpi/loops.h"

enum { WINDOW_USUAL = 64, WINDOW_MOST = 1024, RATE_MAX_BYTES = 64 << 10, VISIT_SCALE = 5, DIRECTIONS = 2 };

static int window(const struct mpi_side *side, uint64_t messages) {
    MPI_Request requests[DIRECTIONS * WINDOW_MOST];
    int count = 0, code = MPI_SUCCESS;
    for (size_t i = 0; i < messages && code == MPI_SUCCESS; i++)
        code = MPI_Irecv(side->in + i * (size_t)side->size, side->size, MPI_BYTE, side->link.peer, TAG_DATA,
                         side->link.comm, &requests[count++]);
    for (size_t i = 0; i < messages && code == MPI_SUCCESS; i++)
        code = MPI_Isend(side->out, side->size, MPI_BYTE, side->link.peer, TAG_DATA, side->link.comm,
                         &requests[count++]);
    return code == MPI_SUCCESS ? MPI_Waitall(count, requests, MPI_STATUSES_IGNORE) : code;
}

/* Whole windows only; messages of both directions count. */
static uint64_t windows(const struct visit *visit) {
    const uint64_t each = DIRECTIONS * (uint64_t)visit->parameter;
    return (visit->iterations + each - 1) / each;
}

static int both_ways(struct visit *visit, struct failure *failure) {
    struct mpi_side side = mpi_side(visit, NULL);
    int code = MPI_SUCCESS;
    side.in = area_of((size_t)visit->parameter * visit->size, failure);
    if (side.in == NULL)
        return -1;
    const uint64_t begin = clock_now_ns();
    for (uint64_t left = windows(visit); left > 0 && code == MPI_SUCCESS; left--) {
        code = window(&side, (uint64_t)visit->parameter);
        watchdog_beat();
    }
    visit->total_ns = clock_now_ns() - begin;
    visit->timed = windows(visit) * DIRECTIONS * (uint64_t)visit->parameter;
    return code == MPI_SUCCESS ? mpi_check(visit, side.in, failure) : mpi_failed(&side.link, code, failure);
}

static int respond(struct visit *visit, struct failure *failure) {
    mpi_fill(visit);
    return both_ways(visit, failure);
}

static const struct operation OPERATION = {
    .name = "mpi_rate_both",
    .link = LINK_MPI,
    .pattern = "exchange",
    .quantity = "time per message, of both directions",
    .divisor = 1,
    .moves_bytes = true,
    .timing = TIMING_BATCH,
    .visit_scale = VISIT_SCALE,
    .parameter = {.name = "messages on their way each way",
                  .usual = WINDOW_USUAL,
                  .low = 1,
                  .high = WINDOW_MOST},
    .max_size = RATE_MAX_BYTES,
    .summary = "Messages in both directions at once, so many on their way each way at a time (bidirectional "
               "bandwidth)",
    .initiate = both_ways,
    .respond = respond,
};
WULF_OPERATION(OPERATION)
