/* Message rate: many messages are on their way at the same time, and each window of them is answered. */
#include "probe/mpi/area.h"
#include "probe/mpi/loops.h"

enum { WINDOW_USUAL = 64, WINDOW_MOST = 1024, RATE_MAX_BYTES = 64 << 10, VISIT_SCALE = 5 };

typedef int (*start_function)(const struct mpi_side *side, size_t index, MPI_Request *request);

static inline int start_send(const struct mpi_side *side, size_t index, MPI_Request *request) {
    (void)index; /* all send the same message */
    return MPI_Isend(side->out, side->size, MPI_BYTE, side->link.peer, TAG_DATA, side->link.comm, request);
}

static inline int start_receive(const struct mpi_side *side, size_t index, MPI_Request *request) {
    return MPI_Irecv(side->in + index * (size_t)side->size, side->size, MPI_BYTE, side->link.peer, TAG_DATA,
                     side->link.comm, request);
}

__attribute__((always_inline)) static inline int window(const struct mpi_side *side, uint64_t messages,
                                                        start_function start) {
    MPI_Request requests[WINDOW_MOST];
    int code = MPI_SUCCESS;
    for (size_t i = 0; i < messages && code == MPI_SUCCESS; i++)
        code = start(side, i, &requests[i]);
    return code == MPI_SUCCESS ? MPI_Waitall((int)messages, requests, MPI_STATUSES_IGNORE) : code;
}

/* Whole windows only: a shorter one would be another question. */
static uint64_t windows(const struct visit *visit) {
    return (visit->iterations + visit->parameter - 1) / visit->parameter;
}

static int initiate(struct visit *visit, struct failure *failure) {
    struct mpi_side side = mpi_side(visit, NULL);
    unsigned char answer = 0;
    int code = MPI_SUCCESS;
    const uint64_t begin = clock_now_ns();
    for (uint64_t left = windows(visit); left > 0 && code == MPI_SUCCESS; left--) {
        code = window(&side, visit->parameter, start_send);
        if (code == MPI_SUCCESS)
            code =
                MPI_Recv(&answer, 1, MPI_BYTE, side.link.peer, TAG_DATA, side.link.comm, MPI_STATUS_IGNORE);
        watchdog_beat();
    }
    visit->total_ns = clock_now_ns() - begin;
    visit->timed = windows(visit) * visit->parameter;
    return code == MPI_SUCCESS ? mpi_agree(visit, true, failure) : mpi_failed(&side.link, code, failure);
}

static int respond(struct visit *visit, struct failure *failure) {
    struct mpi_side side = mpi_side(visit, NULL);
    const unsigned char answer = 1;
    int code = MPI_SUCCESS;
    side.in = area_of((size_t)visit->parameter * visit->size, failure);
    if (side.in == NULL)
        return -1;
    for (uint64_t left = windows(visit); left > 0 && code == MPI_SUCCESS; left--) {
        code = window(&side, visit->parameter, start_receive);
        if (code == MPI_SUCCESS)
            code = MPI_Send(&answer, 1, MPI_BYTE, side.link.peer, TAG_DATA, side.link.comm);
        watchdog_beat();
    }
    return code == MPI_SUCCESS ? mpi_check(visit, side.in, failure) : mpi_failed(&side.link, code, failure);
}

static const struct operation OPERATION = {
    .name = "mpi_rate",
    .link = LINK_MPI,
    .pattern = "stream",
    .quantity = "time per message",
    .divisor = 1,
    .moves_bytes = true,
    .timing = TIMING_BATCH,
    .visit_scale = VISIT_SCALE,
    .parameter = {.name = "messages on their way", .usual = WINDOW_USUAL, .low = 1, .high = WINDOW_MOST},
    .max_size = RATE_MAX_BYTES,
    .summary =
        "Messages in one direction, so many on their way at a time (MPI_Isend), each window of them answered",
    .initiate = initiate,
    .respond = respond,
};
WULF_OPERATION(OPERATION)
