/* Ping-pong with requests that are made once and started again for every message. */
#include "probe/mpi/loops.h"

struct requests {
    MPI_Request send, receive;
};

static inline int start(MPI_Request *request) {
    const int code = MPI_Start(request);
    return code == MPI_SUCCESS ? MPI_Wait(request, MPI_STATUS_IGNORE) : code;
}

static inline int bounce(struct mpi_side *side) {
    struct requests *requests = side->state;
    const int code = start(&requests->send);
    return code == MPI_SUCCESS ? start(&requests->receive) : code;
}

static inline int answer(struct mpi_side *side) {
    struct requests *requests = side->state;
    const int code = start(&requests->receive);
    return code == MPI_SUCCESS ? start(&requests->send) : code;
}

static int make(struct requests *requests, const struct visit *visit, struct failure *failure) {
    const struct mpi_link *link = visit->link;
    const int size = (int)visit->size;
    *requests = (struct requests){MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int code =
        MPI_Send_init(visit->buffer, size, MPI_BYTE, link->peer, TAG_DATA, link->comm, &requests->send);
    if (code == MPI_SUCCESS)
        code = MPI_Recv_init(visit->buffer, size, MPI_BYTE, link->peer, TAG_DATA, link->comm,
                             &requests->receive);
    return code == MPI_SUCCESS ? 0 : mpi_failed(link, code, failure);
}

static void forget(struct requests *requests) {
    if (requests->send != MPI_REQUEST_NULL)
        MPI_Request_free(&requests->send);
    if (requests->receive != MPI_REQUEST_NULL)
        MPI_Request_free(&requests->receive);
}

static int initiate(struct visit *visit, struct failure *failure) {
    struct requests requests;
    struct mpi_side side = mpi_side(visit, &requests);
    int result = make(&requests, visit, failure);
    if (result == 0)
        result = mpi_initiate(visit, &side, bounce, failure);
    forget(&requests);
    return result;
}

static int respond(struct visit *visit, struct failure *failure) {
    struct requests requests;
    struct mpi_side side = mpi_side(visit, &requests);
    int result = make(&requests, visit, failure);
    if (result == 0)
        result = mpi_respond(visit, &side, answer, failure);
    forget(&requests);
    return result;
}

static const struct operation OPERATION = {
    .name = "mpi_persistent",
    .link = LINK_MPI,
    .pattern = "ping-pong",
    .quantity = "half round trip",
    .divisor = 2,
    .moves_bytes = true,
    .echoes = true,
    .max_size = MESSAGE_MAX_BYTES,
    .summary =
        "Ping-pong with persistent requests: MPI_Send_init and MPI_Recv_init once, MPI_Start each time",
    .initiate = initiate,
    .respond = respond,
};
WULF_OPERATION(OPERATION)
