/* Ping-pong with messages that are in no cache: each is sent from, and received in, another place. */
#include <string.h>
#include <unistd.h>

#include "probe/mpi/area.h"
#include "probe/mpi/loops.h"

enum { LINE = 64, USUAL_CACHE_BYTES = 32 << 20 };
static const size_t MOST_BYTES = (size_t)1 << 30;

/* Messages to send from the first half of the area, received in the other; each half is so many caches. */
struct places {
    unsigned char *out, *in;
    size_t step, count, at;
};

static size_t last_level_cache(void) {
    const long levels[] = {sysconf(_SC_LEVEL4_CACHE_SIZE), sysconf(_SC_LEVEL3_CACHE_SIZE),
                           sysconf(_SC_LEVEL2_CACHE_SIZE)};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        if (levels[i] > 0)
            return (size_t)levels[i];
    return USUAL_CACHE_BYTES;
}

static inline int bounce(struct mpi_side *side) {
    struct places *places = side->state;
    const size_t offset = places->at * places->step;
    places->at = places->at + 1 == places->count ? 0 : places->at + 1;
    const int code =
        MPI_Send(places->out + offset, side->size, MPI_BYTE, side->link.peer, TAG_DATA, side->link.comm);
    if (code != MPI_SUCCESS)
        return code;
    return MPI_Recv(places->in + offset, side->size, MPI_BYTE, side->link.peer, TAG_DATA, side->link.comm,
                    MPI_STATUS_IGNORE);
}

static inline int answer(struct mpi_side *side) {
    struct places *places = side->state;
    const size_t offset = places->at * places->step;
    places->at = places->at + 1 == places->count ? 0 : places->at + 1;
    const int code = MPI_Recv(places->in + offset, side->size, MPI_BYTE, side->link.peer, TAG_DATA,
                              side->link.comm, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS)
        return code;
    return MPI_Send(places->out + offset, side->size, MPI_BYTE, side->link.peer, TAG_DATA, side->link.comm);
}

/* The message of the visit's last iteration is its payload, on both sides, and its place to be received
 * empty. */
static int prepare(const struct visit *visit, struct places *places, struct failure *failure) {
    size_t half = visit->parameter * last_level_cache();
    half = half > MOST_BYTES / 2 ? MOST_BYTES / 2 : half;
    places->step = (visit->size / LINE + 1) * LINE;
    if (half < 2 * places->step)
        half = 2 * places->step;
    unsigned char *const area = area_of(2 * half, failure);
    if (area == NULL)
        return -1;
    places->out = area;
    places->in = area + half;
    places->count = half / places->step;
    /* Visits go on where others ended: the beginning may be in a cache yet. */
    places->at = (size_t)(visit->number * visit->iterations % places->count);
    const size_t last = (places->at + (size_t)(visit->iterations % places->count)) % places->count;
    payload_fill(places->out + last * places->step, 0, visit->size, visit->seed, visit->number);
    memset(places->in + last * places->step, 0, visit->size);
    return 0;
}

static int check(struct visit *visit, const struct places *places, struct failure *failure) {
    const size_t last = (places->at + places->count - 1) % places->count;
    return mpi_check(visit, places->in + last * places->step, failure);
}

static int initiate(struct visit *visit, struct failure *failure) {
    struct places places;
    struct mpi_side side = mpi_side(visit, &places);
    if (prepare(visit, &places, failure) != 0 || mpi_initiate(visit, &side, bounce, failure) != 0)
        return -1;
    return check(visit, &places, failure);
}

static int respond(struct visit *visit, struct failure *failure) {
    struct places places;
    struct mpi_side side = mpi_side(visit, &places);
    if (prepare(visit, &places, failure) != 0 || mpi_respond(visit, &side, answer, failure) != 0)
        return -1;
    return check(visit, &places, failure);
}

static const struct operation OPERATION = {
    .name = "mpi_outofcache",
    .link = LINK_MPI,
    .pattern = "ping-pong",
    .quantity = "half round trip, out of cache",
    .divisor = 2,
    .moves_bytes = true,
    .parameter = {.name = "last-level caches", .usual = 2, .low = 1, .high = 64},
    .max_size = MESSAGE_MAX_BYTES,
    .summary = "Blocking ping-pong whose messages cycle through so many times the last-level cache",
    .initiate = initiate,
    .respond = respond,
};
WULF_OPERATION(OPERATION)
