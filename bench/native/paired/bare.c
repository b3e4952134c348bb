#include "bare.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probe/mpi/area.h"

#define WORLD MPI_COMM_WORLD
enum { TAG = 1, LEFT = 2, RIGHT = 3, LINE = 64 };
static const size_t MOST_AREA = (size_t)1 << 30;

/* The same loop around an iteration, with that inlined. One iteration comes before the clock runs. */
#define LOOPS(NAME, INITIATE, RESPOND)                                                                       \
    static double NAME##_initiate(struct loop *loop, uint64_t iterations) {                                  \
        loop->left = 0;                                                                                      \
        INITIATE(loop);                                                                                      \
        const double begin_s = MPI_Wtime();                                                                  \
        for (loop->left = iterations; loop->left-- > 0;)                                                     \
            INITIATE(loop);                                                                                  \
        return MPI_Wtime() - begin_s;                                                                        \
    }                                                                                                        \
    static void NAME##_respond(struct loop *loop, uint64_t iterations) {                                     \
        loop->left = 0;                                                                                      \
        RESPOND(loop);                                                                                       \
        for (loop->left = iterations; loop->left-- > 0;)                                                     \
            RESPOND(loop);                                                                                   \
    }

static inline void send(struct loop *loop, const void *message) {
    MPI_Send(message, loop->size, MPI_BYTE, loop->peer, TAG, WORLD);
}

static inline void receive(struct loop *loop, void *message) {
    MPI_Recv(message, loop->size, MPI_BYTE, loop->peer, TAG, WORLD, MPI_STATUS_IGNORE);
}

static inline void bounce(struct loop *loop) {
    send(loop, loop->out);
    receive(loop, loop->out);
}

static inline void answer(struct loop *loop) {
    receive(loop, loop->out);
    send(loop, loop->out);
}

LOOPS(pingpong, bounce, answer)

static inline void both(struct loop *loop) {
    MPI_Irecv(loop->in, loop->size, MPI_BYTE, loop->peer, TAG, WORLD, &loop->requests[0]);
    MPI_Isend(loop->out, loop->size, MPI_BYTE, loop->peer, TAG, WORLD, &loop->requests[1]);
    MPI_Waitall(2, loop->requests, MPI_STATUSES_IGNORE);
}

static inline void answer_nb(struct loop *loop) {
    MPI_Irecv(loop->out, loop->size, MPI_BYTE, loop->peer, TAG, WORLD, &loop->requests[0]);
    MPI_Wait(&loop->requests[0], MPI_STATUS_IGNORE);
    MPI_Isend(loop->out, loop->size, MPI_BYTE, loop->peer, TAG, WORLD, &loop->requests[1]);
    MPI_Wait(&loop->requests[1], MPI_STATUS_IGNORE);
}

LOOPS(pingpong_nb, both, answer_nb)
LOOPS(exchange, both, both)

static void open_persistent(struct loop *loop) {
    MPI_Send_init(loop->out, loop->size, MPI_BYTE, loop->peer, TAG, WORLD, &loop->requests[0]);
    MPI_Recv_init(loop->out, loop->size, MPI_BYTE, loop->peer, TAG, WORLD, &loop->requests[1]);
}

static void close_persistent(struct loop *loop) {
    MPI_Request_free(&loop->requests[0]);
    MPI_Request_free(&loop->requests[1]);
}

static inline void start(MPI_Request *request) {
    MPI_Start(request);
    MPI_Wait(request, MPI_STATUS_IGNORE);
}

static inline void bounce_persistent(struct loop *loop) {
    start(&loop->requests[0]);
    start(&loop->requests[1]);
}

static inline void answer_persistent(struct loop *loop) {
    start(&loop->requests[1]);
    start(&loop->requests[0]);
}

LOOPS(persistent, bounce_persistent, answer_persistent)

static inline void neighbours(struct loop *loop) {
    char *in = loop->in;
    MPI_Irecv(in, loop->size, MPI_BYTE, loop->peer, RIGHT, WORLD, &loop->requests[0]);
    MPI_Irecv(in + loop->size, loop->size, MPI_BYTE, loop->peer, LEFT, WORLD, &loop->requests[1]);
    MPI_Isend(loop->out, loop->size, MPI_BYTE, loop->peer, LEFT, WORLD, &loop->requests[2]);
    MPI_Isend(loop->out, loop->size, MPI_BYTE, loop->peer, RIGHT, WORLD, &loop->requests[3]);
    MPI_Waitall(EXCHANGES, loop->requests, MPI_STATUSES_IGNORE);
}

LOOPS(ring, neighbours, neighbours)

/* The responder lends its memory; it takes no part until the barrier. */
static void open_window(struct loop *loop) {
    MPI_Win_create(loop->in, loop->size, 1, MPI_INFO_NULL, WORLD, &loop->window);
    if (loop->peer == 1)
        MPI_Win_lock(MPI_LOCK_SHARED, loop->peer, 0, loop->window);
}

static void close_window(struct loop *loop) {
    if (loop->peer == 1)
        MPI_Win_unlock(loop->peer, loop->window);
    MPI_Barrier(WORLD);
    MPI_Win_free(&loop->window);
}

static inline void put(struct loop *loop) {
    MPI_Put(loop->out, loop->size, MPI_BYTE, loop->peer, 0, loop->size, MPI_BYTE, loop->window);
    MPI_Win_flush(loop->peer, loop->window);
}

static inline void get(struct loop *loop) {
    MPI_Get(loop->out, loop->size, MPI_BYTE, loop->peer, 0, loop->size, MPI_BYTE, loop->window);
    MPI_Win_flush(loop->peer, loop->window);
}

static inline void nothing(struct loop *loop) { (void)loop; }

LOOPS(put, put, nothing)
LOOPS(get, get, nothing)

/* A window of messages is full, or there are no more. */
static inline int is_last(struct loop *loop) { return ++loop->begun == WINDOW || loop->left == 0; }

static inline void end_window(struct loop *loop) {
    MPI_Waitall(loop->begun, loop->requests, MPI_STATUSES_IGNORE);
    loop->begun = 0;
}

static inline void send_many(struct loop *loop) {
    char token;
    MPI_Isend(loop->out, loop->size, MPI_BYTE, loop->peer, TAG, WORLD, &loop->requests[loop->begun]);
    if (!is_last(loop))
        return;
    end_window(loop);
    MPI_Recv(&token, 1, MPI_BYTE, loop->peer, TAG, WORLD, MPI_STATUS_IGNORE);
}

static inline void receive_many(struct loop *loop) {
    const char token = 0;
    char *in = (char *)loop->memory + (size_t)loop->begun * (size_t)loop->size;
    MPI_Irecv(in, loop->size, MPI_BYTE, loop->peer, TAG, WORLD, &loop->requests[loop->begun]);
    if (!is_last(loop))
        return;
    end_window(loop);
    MPI_Send(&token, 1, MPI_BYTE, loop->peer, TAG, WORLD);
}

static void open_rate(struct loop *loop) { loop->memory = malloc((size_t)WINDOW * (size_t)loop->size + 1); }

static void close_memory(struct loop *loop) { free(loop->memory); }

LOOPS(rate, send_many, receive_many)

static void open_strided(struct loop *loop) {
    const int elements = loop->size / (int)sizeof(double);
    struct failure failure;
    /* In the same memory as the probe's: how it lies in pages and caches costs more than any loop. */
    loop->memory = (double *)(void *)area_of((size_t)(elements + 1) * STRIDE * sizeof(double), &failure);
    MPI_Type_vector(elements, 1, STRIDE, MPI_DOUBLE, &loop->type);
    MPI_Type_commit(&loop->type);
}

/* The message is the probe's, which looks at it when it comes back. */
static void open_packed(struct loop *loop) {
    const double *message = loop->out;
    open_strided(loop);
    for (int i = 0; i < loop->size / (int)sizeof(double); i++)
        loop->memory[(size_t)i * STRIDE] = message[i];
}

static void close_strided(struct loop *loop) { MPI_Type_free(&loop->type); }

static inline void send_vector(struct loop *loop) {
    MPI_Send(loop->memory, 1, loop->type, loop->peer, TAG, WORLD);
}

static inline void receive_vector(struct loop *loop) {
    MPI_Recv(loop->memory, 1, loop->type, loop->peer, TAG, WORLD, MPI_STATUS_IGNORE);
}

static inline void bounce_vector(struct loop *loop) {
    send_vector(loop);
    receive_vector(loop);
}

static inline void answer_vector(struct loop *loop) {
    receive_vector(loop);
    send_vector(loop);
}

LOOPS(strided, bounce_vector, answer_vector)

static inline void pack_and_send(struct loop *loop) {
    double *message = loop->out;
    for (int i = 0; i < loop->size / (int)sizeof(double); i++)
        message[i] = loop->memory[(size_t)i * STRIDE];
    send(loop, message);
}

static inline void receive_and_unpack(struct loop *loop) {
    const double *message = loop->out;
    receive(loop, loop->out);
    for (int i = 0; i < loop->size / (int)sizeof(double); i++)
        loop->memory[(size_t)i * STRIDE] = message[i];
}

static inline void bounce_packed(struct loop *loop) {
    pack_and_send(loop);
    receive_and_unpack(loop);
}

static inline void answer_packed(struct loop *loop) {
    receive_and_unpack(loop);
    pack_and_send(loop);
}

LOOPS(packed, bounce_packed, answer_packed)

/* Places of messages in twice the last level of the cache, in the same memory as the probe's. */
/* Visits go on where others ended: the beginning would be in a cache. */
static size_t went_on;

static void close_outofcache(struct loop *loop) { went_on = loop->at; }

static void open_outofcache(struct loop *loop) {
    const long level = sysconf(_SC_LEVEL3_CACHE_SIZE);
    size_t bytes = (level > 0 ? (size_t)level : (size_t)32 << 20) * 4;
    if (bytes > MOST_AREA)
        bytes = MOST_AREA;
    loop->places = bytes / 2 / (((size_t)loop->size / LINE + 1) * LINE);
    struct failure failure;
    loop->memory = (double *)(void *)area_of(bytes, &failure);
    loop->at = went_on % loop->places;
}

static inline char *place(struct loop *loop, int half) {
    const size_t step = ((size_t)loop->size / LINE + 1) * LINE;
    return (char *)loop->memory + ((size_t)half * loop->places + loop->at) * step;
}

static inline void bounce_elsewhere(struct loop *loop) {
    send(loop, place(loop, 0));
    receive(loop, place(loop, 1));
    loop->at = loop->at + 1 == loop->places ? 0 : loop->at + 1;
}

static inline void answer_elsewhere(struct loop *loop) {
    receive(loop, place(loop, 1));
    send(loop, place(loop, 0));
    loop->at = loop->at + 1 == loop->places ? 0 : loop->at + 1;
}

LOOPS(outofcache, bounce_elsewhere, answer_elsewhere)

#define BARE(NAME, OPEN, CLOSE) {"mpi_" #NAME, OPEN, NAME##_initiate, NAME##_respond, CLOSE}
static const struct bare ALL[] = {
    BARE(pingpong, NULL, NULL),
    BARE(pingpong_nb, NULL, NULL),
    BARE(persistent, open_persistent, close_persistent),
    BARE(exchange, NULL, NULL),
    BARE(ring, NULL, NULL),
    BARE(put, open_window, close_window),
    BARE(get, open_window, close_window),
    BARE(rate, open_rate, close_memory),
    BARE(strided, open_strided, close_strided),
    BARE(packed, open_packed, close_strided),
    BARE(outofcache, open_outofcache, close_outofcache),
};

const struct bare *bare_find(const char *operation) {
    for (size_t i = 0; i < sizeof ALL / sizeof *ALL; i++)
        if (strcmp(ALL[i].operation, operation) == 0)
            return &ALL[i];
    return NULL;
}
