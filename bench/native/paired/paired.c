/* An operation of the probe and a bare loop (bare.c) in one launch, visit by visit.
 *
 *     mpirun -np 2 paired OPERATION VISIT_US BLOCKS SEED SIZE…
 *
 * The probe makes its experiment as it always does (sweep.c), of an operation that has three arms: its own,
 * a bare loop, and the bare loop once more, which tells how much two arms differ that do not.
 * Every block is a visit of each of them, in random order: same processes, same connection, same buffers, as
 * many messages. Both arms make one iteration before their clock runs.
 *
 * It is no operation of the probe, and is not installed.
 *
 * Prints a JSON object for each size, values in the order of time:
 *     {"size": 1, "iterations": 50, "corrupt": 0, "visits": [["probe", VALUE IN ns], …]} */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bare.h"
#include "core/watchdog.h"
#include "probe/mpi/link.h"
#include "probe/order.h"
#include "probe/sweep.h"

enum { PAIR = 2, ARMS = 3, PROBE = 0, PEER_TIMEOUT_S = 60 };
enum { MAX_VISIT_US = 1000000, MAX_BLOCKS = 30000, MAX_SIZES = 16 };
/* Visits before this block may belong to the warm-up. */
enum { FIRST_BLOCK = WARMUP_MAX_VISITS / ARMS + 1 };
static const char *const NAMES[ARMS] = {"probe", "bare", "again"};

/* How it is measured. */
struct way {
    uint64_t visit_us, blocks, seed;
    size_t sizes[MAX_SIZES], count;
};

static const struct operation *probe;
static const struct bare *bare;
/* Of the initiator, by the number of the visit: the mean of its iterations. */
static double *values_ns;

/* Both sides know it from what the probe announces. */
static size_t arm_of(const struct visit *visit) {
    size_t order[ARMS];
    order_shuffle(order, ARMS, visit->seed, visit->number / ARMS);
    return order[visit->number % ARMS];
}

static double bare_initiate(struct loop *loop, uint64_t iterations) {
    if (bare->open != NULL)
        bare->open(loop);
    const double total_s = bare->initiate(loop, iterations);
    if (bare->close != NULL)
        bare->close(loop);
    return total_s;
}

static void bare_respond(struct loop *loop, uint64_t iterations) {
    if (bare->open != NULL)
        bare->open(loop);
    bare->respond(loop, iterations);
    if (bare->close != NULL)
        bare->close(loop);
}

static struct loop loop_of(const struct visit *visit, int peer) {
    return (struct loop){.out = visit->buffer, .in = visit->spare, .size = (int)visit->size, .peer = peer};
}

static int initiate(struct visit *visit, struct failure *failure) {
    int status = 0;
    if (arm_of(visit) == PROBE) {
        status = probe->initiate(visit, failure);
    } else {
        struct loop loop = loop_of(visit, 1);
        const double total_s = bare_initiate(&loop, visit->iterations);
        visit->times_ns = NULL; /* it has only a total */
        visit->total_ns = (uint64_t)llround(total_s * 1e9);
        visit->timed = visit->iterations;
    }
    if (status == 0)
        values_ns[visit->number] = (double)visit->total_ns / (double)visit->timed / probe->divisor;
    return status;
}

static int respond(struct visit *visit, struct failure *failure) {
    if (arm_of(visit) == PROBE)
        return probe->respond(visit, failure);
    struct loop loop = loop_of(visit, 0);
    bare_respond(&loop, visit->iterations);
    return 0;
}

static void ignore(const struct progress *progress, void *context) {
    (void)progress;
    (void)context;
}

static void print(const struct cell *cell, uint64_t blocks, uint64_t seed) {
    printf("{\"size\": %zu, \"iterations\": %llu, \"corrupt\": %llu, \"visits\": [", cell->size,
           (unsigned long long)cell->visit_iterations, (unsigned long long)cell->corrupt);
    for (uint64_t i = 0; i < blocks * ARMS; i++) {
        const struct visit visit = {.number = FIRST_BLOCK * ARMS + i, .seed = seed};
        printf("%s[\"%s\", %.3f]", i == 0 ? "" : ", ", NAMES[arm_of(&visit)], values_ns[visit.number]);
    }
    printf("]}\n");
}

static int measure(const struct operation *operation, const struct channel *channel, size_t size,
                   const struct way *way, struct failure *failure) {
    const struct plan plan = {.operation = operation,
                              .sizes = &size,
                              .count = 1,
                              .sweeps = (FIRST_BLOCK + way->blocks) * ARMS,
                              .visit_us = way->visit_us,
                              .seed = way->seed,
                              .parameter = operation->parameter.usual,
                              .clock = clock_measure()};
    struct references references = {0};
    struct scheduled scheduled[2];
    struct scheduling scheduling = {.ranks = 2, .of = scheduled};
    struct cell *cells = cells_new(&plan, 2);
    values_ns = calloc(plan.sweeps + WARMUP_MAX_VISITS, sizeof *values_ns);
    int status = -1;
    if (cells == NULL || values_ns == NULL)
        failure_set(failure, "system", "", "no memory for %llu visits", (unsigned long long)plan.sweeps);
    else
        status = sweep_run(&plan, channel, cells, &references, &scheduling, ignore, NULL, failure);
    if (status == 0)
        print(cells, way->blocks, way->seed);
    free(values_ns);
    cells_free(cells, plan.count);
    return status;
}

static int take_part(int rank, const struct way *way, size_t size, struct failure *failure) {
    struct mpi_link link = {
        .comm = MPI_COMM_WORLD, .peer = 1 - rank, .last_peer = 1 - rank, .peer_name = "the other rank"};
    const struct channel channel = mpi_channel(&link);
    struct operation operation = *probe;
    operation.initiate = initiate;
    operation.respond = respond;
    if (rank == 0)
        return measure(&operation, &channel, size, way, failure);
    const struct responder responder = {
        .operation = &operation, .parameter = operation.parameter.usual, .ranks = 2, .max_size = size};
    return sweep_respond(&responder, &channel, failure);
}

/* A whole number from `low` to `high`; otherwise the program ends. Not yet within MPI, whose end could cut
 * the message off. */
static uint64_t number(const char *text, unsigned long long low, unsigned long long high) {
    char *end = NULL;
    const unsigned long long value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || value < low || value > high) {
        fprintf(stderr, "paired: %s is not a whole number from %llu to %llu\n", text, low, high);
        exit(USAGE_EXIT);
    }
    return value;
}

static struct way way_of(int argc, char **argv) {
    if (argc < 6 || argc > 5 + MAX_SIZES) {
        fprintf(stderr, "usage: mpirun -np 2 paired OPERATION VISIT_US BLOCKS SEED SIZE...\n");
        exit(USAGE_EXIT);
    }
    struct way way = {.visit_us = number(argv[2], 1, MAX_VISIT_US),
                      .blocks = number(argv[3], 1, MAX_BLOCKS),
                      .seed = number(argv[4], 0, UINT32_MAX)};
    for (int a = 5; a < argc; a++)
        way.sizes[way.count++] = number(argv[a], 0, MESSAGE_MAX_BYTES);
    return way;
}

int main(int argc, char **argv) {
    const struct way way = way_of(argc, argv);
    int rank = 0;
    int ranks = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks != PAIR) {
        if (rank == 0)
            fprintf(stderr, "paired: there are %d ranks: start it with -np 2\n", ranks);
        MPI_Finalize();
        return USAGE_EXIT;
    }
    probe = operation_find(argv[1]);
    bare = bare_find(argv[1]);
    if (probe == NULL || bare == NULL) {
        if (rank == 0)
            fprintf(stderr, "paired: there is no bare loop of %s\n", argv[1]);
        MPI_Finalize();
        return USAGE_EXIT;
    }
    struct failure failure = {0};
    /* Runs in the probe, too. */
    int status = watchdog_start(STDERR_FILENO, "the other rank", PEER_TIMEOUT_S);
    for (size_t i = 0; i < way.count && status == 0; i++)
        status = take_part(rank, &way, way.sizes[i], &failure);
    if (status != 0) {
        fprintf(stderr, "paired: rank %d: %s\n", rank, failure.message);
        MPI_Abort(MPI_COMM_WORLD, FAILURE_EXIT);
    }
    MPI_Finalize();
    return 0;
}
