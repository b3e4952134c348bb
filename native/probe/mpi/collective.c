#include "probe/mpi/collective.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/mpi/clocks.h"
#include "core/sort.h"
#include "core/watchdog.h"

enum {
    TRIED = 3,            /* iterations that say how long one takes */
    TRIED_BESIDE = 9,     /* where a computation will last as long: an error of it is one of the overlap */
    TOLERANCE_SHARE = 10, /* of that: so late a rank may be */
    BLOCK =
        16 /* iterations; then a new begin is agreed on, or one long iteration makes all later ones late */
};
static const int64_t TOLERANCE_NS = 2000, SPARE_NS = 20000;
/* Between one iteration's begin and the next one's: so many times what one takes, and a little. */
static const int64_t APART = 2;

/* What a rank notes of its iterations. */
struct notes {
    int64_t *begun_ns, *ended_ns; /* on its own clock */
    int64_t *late_ns;             /* after the time that was agreed on */
};

static void notes_free(struct notes *notes) {
    free(notes->begun_ns);
    free(notes->ended_ns);
    free(notes->late_ns);
}

static int notes_new(struct notes *notes, uint64_t iterations) {
    *notes = (struct notes){.begun_ns = calloc(iterations, sizeof *notes->begun_ns),
                            .ended_ns = calloc(iterations, sizeof *notes->ended_ns),
                            .late_ns = calloc(iterations, sizeof *notes->late_ns)};
    return notes->begun_ns != NULL && notes->ended_ns != NULL && notes->late_ns != NULL ? 0 : -1;
}

/* The largest of all ranks' values, on rank 0, where both places may be the same. Non-blocking, as an
 * algorithm that was forced on MPI_Reduce has no say in that: it need not be able to do a few numbers. */
static int reduce_max(const struct part *part, const int64_t *values, int64_t *largest, int count) {
    MPI_Request request;
    const bool in_place = part->rank == 0 && values == largest;
    const int code = MPI_Ireduce(in_place ? MPI_IN_PLACE : values, part->rank == 0 ? largest : NULL, count,
                                 MPI_INT64_T, MPI_MAX, 0, part->comm, &request);
    return code == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : code;
}

/* Whether it is so on some rank, on all ranks; as above. */
static int any(const struct part *part, int own, int *some) {
    MPI_Request request;
    const int code = MPI_Iallreduce(&own, some, 1, MPI_INT, MPI_LOR, part->comm, &request);
    return code == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : code;
}

static int64_t now_ns(void) { return (int64_t)clock_now_ns(); }

/* Work that takes so long and calls no MPI: the library gets no CPU from this process meanwhile. */
static void compute(int64_t lasts_ns) {
    const int64_t end = now_ns() + lasts_ns;
    while (now_ns() < end)
        continue;
}

/* Start what was described, and wait for it. */
static int again(struct part *part) {
    const int code = MPI_Start(&part->request);
    return code == MPI_SUCCESS ? MPI_Wait(&part->request, MPI_STATUS_IGNORE) : code;
}

static int once(const struct collective *collective, struct part *part) {
    if (part->way == WAY_BLOCKING || part->way == WAY_AFTER_BARRIER)
        return collective->call(part);
    if (part->way == WAY_PERSISTENT)
        return again(part);
    MPI_Request request;
    const int code = collective->start(part, &request);
    if (code != MPI_SUCCESS)
        return code;
    if (part->computation_ns > 0)
        compute(part->computation_ns);
    return MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static int beside(int (*work)(const struct part *), const struct part *part) {
    return work == NULL ? MPI_SUCCESS : work(part);
}

/* Each iteration after a barrier. */
static int loop_by_barrier(const struct collective *collective, struct part *part, uint64_t iterations,
                           struct notes *notes) {
    int code = MPI_SUCCESS;
    for (uint64_t i = 0; i < iterations && code == MPI_SUCCESS; i++) {
        part->iteration = i;
        code = beside(collective->before, part);
        if (code == MPI_SUCCESS)
            code = MPI_Barrier(part->comm);
        notes->begun_ns[i] = now_ns();
        if (code == MPI_SUCCESS)
            code = once(collective, part);
        notes->ended_ns[i] = now_ns();
        if (code == MPI_SUCCESS)
            code = beside(collective->after, part);
        watchdog_beat();
    }
    return code;
}

/* How long an iteration takes until the last rank is done. */
static int try_out(const struct collective *collective, struct part *part, int64_t *typical_ns) {
    int64_t begun_ns[TRIED_BESIDE];
    int64_t ended_ns[TRIED_BESIDE];
    int64_t longest_ns[TRIED_BESIDE];
    const int tried = part->way == WAY_OVERLAPPED ? TRIED_BESIDE : TRIED;
    struct notes notes = {begun_ns, ended_ns, NULL};
    *typical_ns = 0;
    int code = loop_by_barrier(collective, part, (uint64_t)tried, &notes);
    for (int i = 0; i < tried; i++)
        ended_ns[i] -= begun_ns[i];
    if (code == MPI_SUCCESS)
        code = reduce_max(part, ended_ns, longest_ns, tried);
    if (part->rank == 0 && code == MPI_SUCCESS) {
        uint64_t times[TRIED_BESIDE];
        for (int i = 0; i < tried; i++)
            times[i] = (uint64_t)longest_ns[i];
        *typical_ns = (int64_t)median_u64(times, (size_t)tried);
    }
    return code == MPI_SUCCESS ? MPI_Bcast(typical_ns, 1, MPI_INT64_T, 0, part->comm) : code;
}

/* When the next block begins, on this rank's clock: rank 0 says it, and until then all have heard of it. */
static int next_block(const struct part *part, int64_t apart_ns, int64_t ahead_ns, int64_t *begin_ns) {
    int64_t begin = now_ns() + 2 * apart_ns;
    const int code = MPI_Bcast(&begin, 1, MPI_INT64_T, 0, part->comm);
    *begin_ns = begin + ahead_ns;
    return code;
}

/* Each iteration at its time. One whose predecessor lasted too long begins late; so does the one of a rank
 * that had no CPU. */
static int loop_by_clock(const struct collective *collective, struct part *part, uint64_t iterations,
                         int64_t ahead_ns, int64_t apart_ns, struct notes *notes) {
    int64_t begin = 0;
    int code = MPI_SUCCESS;
    for (uint64_t i = 0; i < iterations && code == MPI_SUCCESS; i++) {
        begin += apart_ns;
        if (i % BLOCK == 0)
            code = next_block(part, apart_ns, ahead_ns, &begin);
        int64_t now = now_ns();
        while (now < begin) {
            sched_yield(); /* ranks may share a CPU */
            now = now_ns();
        }
        notes->late_ns[i] = now - begin;
        notes->begun_ns[i] = begin;
        if (code == MPI_SUCCESS)
            code = once(collective, part);
        notes->ended_ns[i] = now_ns();
        watchdog_beat();
    }
    return code;
}

/* Typical time of this rank, which becomes known to rank 0; sorts the begins away, which are not needed any
 * more. */
static int tell_exit(const struct part *part, uint64_t iterations, struct notes *notes, struct visit *visit) {
    uint64_t *times = (uint64_t *)notes->begun_ns;
    for (uint64_t i = 0; i < iterations; i++)
        times[i] = notes->ended_ns[i] > 0 ? (uint64_t)notes->ended_ns[i] : 0;
    const double typical_ns = median_u64(times, iterations);
    return MPI_Gather(&typical_ns, 1, MPI_DOUBLE, visit->exits_ns, 1, MPI_DOUBLE, 0, part->comm);
}

/* How late some rank may have been for an iteration that counts: hardly; but where hosts are so busy that
 * this leaves less than half, as much as half of them are. The reader is told. */
static int64_t tolerance(const int64_t *late_ns, uint64_t iterations, int64_t typical_ns, uint64_t *sorted) {
    const int64_t share_ns = typical_ns / TOLERANCE_SHARE;
    const int64_t strict_ns = share_ns > TOLERANCE_NS ? share_ns : TOLERANCE_NS;
    for (uint64_t i = 0; i < iterations; i++)
        sorted[i] = late_ns[i] > 0 ? (uint64_t)late_ns[i] : 0;
    const int64_t usual_ns = (int64_t)median_u64(sorted, iterations) + 1;
    return usual_ns > strict_ns ? usual_ns : strict_ns;
}

/* The time of an iteration is that of the rank that was done last, beyond the computation; it counts when
 * nobody was late. */
static int gather(const struct part *part, uint64_t iterations, int64_t typical_ns, struct notes *notes,
                  struct visit *visit) {
    for (uint64_t i = 0; i < iterations; i++)
        notes->ended_ns[i] -= notes->begun_ns[i] + part->computation_ns;
    int code = tell_exit(part, iterations, notes, visit);
    if (code == MPI_SUCCESS)
        code = reduce_max(part, notes->ended_ns, notes->ended_ns, (int)iterations);
    if (code == MPI_SUCCESS)
        code = reduce_max(part, notes->late_ns, notes->late_ns, (int)iterations);
    if (part->rank != 0 || code != MPI_SUCCESS)
        return code;
    const int64_t most_ns = tolerance(notes->late_ns, iterations, typical_ns, visit->times_ns);
    visit->tolerance_ns = (uint64_t)most_ns;
    for (uint64_t i = 0; i < iterations; i++) {
        if (notes->late_ns[i] > most_ns) {
            visit->late++;
            continue;
        }
        /* A clock that was compared badly may let a rank end before it began. */
        const uint64_t time = notes->ended_ns[i] > 0 ? (uint64_t)notes->ended_ns[i] : 0;
        visit->times_ns[visit->timed++] = time;
        visit->total_ns += time;
    }
    if (part->computation_ns > 0 && visit->timed > 0)
        visit->lasted_ns = iterations * ((uint64_t)part->computation_ns + visit->total_ns / visit->timed);
    return code;
}

/* The calls alone: what the library sends meanwhile is sent for them. */
static int loop_bare(const struct collective *collective, struct part *part, uint64_t iterations) {
    int code = MPI_SUCCESS;
    for (uint64_t i = 0; i < iterations && code == MPI_SUCCESS; i++) {
        code = once(collective, part);
        watchdog_beat();
    }
    return code;
}

/* What the clocks were apart is found before and after; the error is the largest difference of the two. A
 * computation is tried without, and then lasts as long on all ranks. */
static int measure(const struct collective *collective, struct part *part, uint64_t iterations,
                   int64_t *typical_ns, struct notes *notes, struct visit *visit) {
    int64_t before_ns = 0;
    int64_t after_ns = 0;
    int64_t error_ns = 0;
    if (part->way == WAY_AFTER_BARRIER) {
        const int64_t begin_ns = now_ns();
        const int done = loop_by_barrier(collective, part, iterations, notes);
        if (collective->before != NULL) /* which may take longer than what is timed */
            visit->lasted_ns = (uint64_t)(now_ns() - begin_ns);
        return done;
    }
    int code = clocks_compare(part->comm, &before_ns);
    if (code == MPI_SUCCESS)
        code = try_out(collective, part, typical_ns);
    if (part->way == WAY_OVERLAPPED)
        part->computation_ns = *typical_ns;
    const int64_t lasts_ns = *typical_ns + part->computation_ns;
    if (code == MPI_SUCCESS)
        code = loop_by_clock(collective, part, iterations, before_ns, APART * lasts_ns + SPARE_NS, notes);
    if (code == MPI_SUCCESS)
        code = clocks_compare(part->comm, &after_ns);
    /* Where both are known, the begin was half of their difference earlier or later than it was thought to
     * be. */
    const int64_t apart_ns = after_ns - before_ns;
    for (uint64_t i = 0; i < iterations; i++)
        notes->begun_ns[i] += apart_ns / 2;
    const int64_t own_ns = apart_ns < 0 ? -apart_ns : apart_ns;
    if (code == MPI_SUCCESS)
        code = reduce_max(part, &own_ns, &error_ns, 1);
    visit->clock_error_ns = (uint64_t)error_ns;
    return code;
}

static int failed(const struct visit *visit, int code, struct failure *failure) {
    return code == MPI_SUCCESS ? 0 : mpi_failed(visit->link, code, failure);
}

/* What lasts as long as the visit. */
static int open_all(const struct collective *collective, struct part *part, struct failure *failure) {
    part->request = MPI_REQUEST_NULL;
    if (part->way == WAY_PERSISTENT)
        return failed(part->visit, collective->describe(part, &part->request), failure);
    return collective->open == NULL ? 0 : collective->open(part, failure);
}

static int close_all(const struct collective *collective, struct part *part, struct failure *failure) {
    if (part->request != MPI_REQUEST_NULL)
        return failed(part->visit, MPI_Request_free(&part->request), failure);
    return collective->close == NULL ? 0 : collective->close(part, failure);
}

/* The iterations, and what they took. */
static int iterate(const struct collective *collective, struct part *part, struct notes *notes,
                   struct visit *visit, struct failure *failure) {
    int64_t typical_ns = 0;
    if (visit->bare)
        return failed(visit, loop_bare(collective, part, visit->iterations), failure);
    const int code = measure(collective, part, visit->iterations, &typical_ns, notes, visit);
    if (code != MPI_SUCCESS)
        return failed(visit, code, failure);
    return failed(visit, gather(part, visit->iterations, typical_ns, notes, visit), failure);
}

int collective_visit(const struct collective *collective, enum way way, struct visit *visit,
                     struct failure *failure) {
    const struct mpi_link *link = visit->link;
    struct part part = {.comm = link->comm,
                        .out = visit->buffer,
                        .in = visit->spare,
                        .size = (int)visit->size,
                        .way = way,
                        .visit = visit};
    struct notes notes;
    MPI_Comm_rank(link->comm, &part.rank);
    MPI_Comm_size(link->comm, &part.ranks);
    part.counts = calloc((size_t)part.ranks, sizeof *part.counts);
    part.places = calloc((size_t)part.ranks, sizeof *part.places);
    int result = notes_new(&notes, visit->iterations);
    if (result != 0 || part.counts == NULL || part.places == NULL)
        result = failure_set(failure, "system", "", "no memory for a visit");
    for (int rank = 0; result == 0 && rank < part.ranks; rank++) {
        part.counts[rank] = part.size;
        part.places[rank] = rank * part.size;
    }
    if (result == 0 && collective->fill != NULL)
        collective->fill(&part);
    if (result == 0)
        result = open_all(collective, &part, failure);
    if (result == 0) {
        result = iterate(collective, &part, &notes, visit, failure);
        if (close_all(collective, &part, failure) != 0)
            result = -1;
    }
    const int wrong = result == 0 && collective->right != NULL && !collective->right(&part);
    int corrupt = 0;
    if (result == 0)
        result = failed(visit, any(&part, wrong, &corrupt), failure);
    visit->corrupt = corrupt != 0;
    free(part.places);
    free(part.counts);
    notes_free(&notes);
    return result;
}

/* Each message has a seed of its own. */
static uint64_t seed_of(const struct part *part, int from, int to) {
    return part->visit->seed + ((uint64_t)(unsigned)(from + 1) << 32) + (uint64_t)(unsigned)(to + 1);
}

void part_put(const struct part *part, unsigned char *place, int from, int to) {
    payload_fill(place, 0, (size_t)part->size, seed_of(part, from, to), part->visit->number);
}

bool part_has(const struct part *part, const unsigned char *place, int from, int to) {
    return payload_matches(place, 0, (size_t)part->size, seed_of(part, from, to), part->visit->number);
}

double part_value(const struct part *part, size_t index, int rank) {
    const uint64_t values = 1000;
    return (double)((part->visit->seed + part->visit->number + index) % values) + rank;
}

double part_sum(const struct part *part, size_t index, int ranks) {
    return ranks * part_value(part, index, 0) + (double)ranks * (ranks - 1) / 2;
}

void part_put_values(const struct part *part, size_t messages) {
    double *values = (double *)(void *)part->out;
    const size_t count = messages * (size_t)part->size / DOUBLE_BYTES;
    for (size_t i = 0; i < count; i++)
        values[i] = part_value(part, i, part->rank);
}

bool part_has_sums(const struct part *part, size_t first, int ranks) {
    const double *sums = (const double *)(const void *)part->in;
    for (size_t i = 0; i < (size_t)part->size / DOUBLE_BYTES; i++) {
        const double expected = part_sum(part, first + i, ranks);
        if (sums[i] < expected || sums[i] > expected)
            return false;
    }
    return true;
}
