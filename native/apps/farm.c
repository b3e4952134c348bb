/* wulf-farm: a master gives tasks out, workers compute each for a drawn time, the master checks every result.
 *
 * A task is so many steps of a linear congruential generator. A worker takes them one by one; the master
 * knows the result of all of them together in a few dozen multiplications, so that it can check every one. A
 * slow worker gets fewer tasks. With one rank the master works itself. */
#include <inttypes.h>
#include <math.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/account.h"
#include "core/clock.h"
#include "core/mpi/end.h"
#include "core/rng.h"

/* Of Knuth's MMIX. */
#define FACTOR UINT64_C(6364136223846793005)
#define SUMMAND UINT64_C(1442695040888963407)

enum { TAG_TASK, TAG_RESULT, TAG_END };
enum { NUMBER, STEPS, STATE, WORDS }; /* what a message begins with */
enum { CALIBRATE_NS = 20000000, CALIBRATE_STEPS = 1 << 20 };

struct farm {
    uint64_t tasks, seed;
    double steps_mean; /* of a task */
    uint64_t *message; /* of so many words */
    int words;
    uint64_t given, back, wrong;
    struct account account;
};

static uint64_t computed(uint64_t state, uint64_t steps) {
    for (uint64_t i = 0; i < steps; i++)
        state = state * FACTOR + SUMMAND;
    return state;
}

/* The same in one go: a step is x -> a x + c, and so are two of them, with a2 = a a and c2 = c (a + 1). */
static uint64_t known(uint64_t state, uint64_t steps) {
    uint64_t factor = FACTOR;
    uint64_t summand = SUMMAND;
    for (; steps > 0; steps >>= 1) {
        if (steps & 1)
            state = state * factor + summand;
        summand *= factor + 1;
        factor *= factor;
    }
    return state;
}

/* Steps that this CPU takes in a microsecond. */
static double speed(void) {
    uint64_t steps = 0;
    uint64_t state = 1;
    const uint64_t begin_ns = clock_now_ns();
    do {
        state = computed(state, CALIBRATE_STEPS);
        steps += CALIBRATE_STEPS;
    } while (clock_now_ns() - begin_ns < CALIBRATE_NS && state != 0);
    return (double)steps * 1e3 / (double)(clock_now_ns() - begin_ns);
}

/* Steps of a task: exponential, so that some take several times the mean. */
static uint64_t drawn(const struct farm *farm, uint64_t number) {
    const uint64_t bits = rng_mix(farm->seed * RNG_STEP + number + 1) >> 11;
    const double uniform = ((double)bits + 0.5) / 9007199254740992.0;
    return (uint64_t)(-log(uniform) * farm->steps_mean) + 1;
}

static void fill(struct farm *farm, uint64_t number) {
    farm->message[NUMBER] = number;
    farm->message[STEPS] = drawn(farm, number);
    farm->message[STATE] = rng_mix(farm->seed + number);
    for (int i = WORDS; i < farm->words; i++)
        farm->message[i] = rng_mix(number + (uint64_t)i);
}

static void check(struct farm *farm) {
    const uint64_t number = farm->message[NUMBER];
    bool right = number < farm->tasks && farm->message[STEPS] == drawn(farm, number) &&
                 farm->message[STATE] == known(rng_mix(farm->seed + number), drawn(farm, number));
    for (int i = WORDS; i < farm->words && right; i++)
        right = farm->message[i] == rng_mix(number + (uint64_t)i);
    farm->back++;
    farm->wrong += !right;
}

static void compute(struct farm *farm) {
    farm->message[STATE] = computed(farm->message[STATE], farm->message[STEPS]);
}

static int send(struct farm *farm, int rank, int tag) {
    account_enter(&farm->account);
    const int code = MPI_Send(farm->message, farm->words, MPI_UINT64_T, rank, tag, MPI_COMM_WORLD);
    account_leave(&farm->account);
    account_sent(&farm->account, (uint64_t)farm->words * sizeof(uint64_t));
    return code;
}

static int receive(struct farm *farm, int rank, MPI_Status *status) {
    account_enter(&farm->account);
    const int code =
        MPI_Recv(farm->message, farm->words, MPI_UINT64_T, rank, MPI_ANY_TAG, MPI_COMM_WORLD, status);
    account_leave(&farm->account);
    return code;
}

/* The next task to a worker, or that there is none. */
static int give(struct farm *farm, int rank) {
    if (farm->given >= farm->tasks)
        return send(farm, rank, TAG_END);
    fill(farm, farm->given++);
    return send(farm, rank, TAG_TASK);
}

static int master(struct farm *farm, int ranks) {
    int code = MPI_SUCCESS;
    for (int rank = 1; rank < ranks && code == MPI_SUCCESS; rank++)
        code = give(farm, rank);
    while (farm->back < farm->tasks && code == MPI_SUCCESS) {
        MPI_Status status;
        code = receive(farm, MPI_ANY_SOURCE, &status);
        if (code != MPI_SUCCESS)
            break;
        check(farm);
        code = give(farm, status.MPI_SOURCE);
    }
    return code;
}

static int worker(struct farm *farm) {
    for (;;) {
        MPI_Status status;
        int code = receive(farm, 0, &status);
        if (code != MPI_SUCCESS || status.MPI_TAG == TAG_END)
            return code;
        compute(farm);
        code = send(farm, 0, TAG_RESULT);
        if (code != MPI_SUCCESS)
            return code;
    }
}

static int alone(struct farm *farm) {
    for (uint64_t number = 0; number < farm->tasks; number++) {
        fill(farm, number);
        compute(farm);
        check(farm);
    }
    return MPI_SUCCESS;
}

static int work(struct farm *farm, int rank, int ranks) {
    int code = MPI_Barrier(MPI_COMM_WORLD);
    const uint64_t begin_ns = clock_now_ns();
    if (code == MPI_SUCCESS)
        code = ranks == 1 ? alone(farm) : rank == 0 ? master(farm, ranks) : worker(farm);
    if (code == MPI_SUCCESS)
        code = MPI_Barrier(MPI_COMM_WORLD);
    farm->account.run_ns = clock_now_ns() - begin_ns;
    return code;
}

static int run(struct farm *farm, double task_us) {
    int rank = 0;
    int ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    struct total total = {0};
    farm->steps_mean = rank == 0 ? task_us * speed() : 0;
    int code = work(farm, rank, ranks);
    if (code == MPI_SUCCESS)
        code = account_total(&farm->account, &total);
    if (code == MPI_SUCCESS)
        code = MPI_Bcast(&farm->wrong, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    if (code == MPI_SUCCESS && rank == 0) {
        printf("program farm\nranks %d\ntasks %" PRIu64 "\ntask_us %.0f\n", ranks, farm->tasks, task_us);
        account_print(&total);
        printf("wrong %" PRIu64 "\nresult %s\n", farm->wrong, farm->wrong == 0 ? "right" : "wrong");
        if (farm->wrong > 0)
            fprintf(stderr, "wulf-farm: %" PRIu64 " of %" PRIu64 " results are wrong\n", farm->wrong,
                    farm->tasks);
    }
    return code == MPI_SUCCESS && farm->wrong == 0 ? EXIT_RIGHT : EXIT_NOT_RIGHT;
}

int main(int argc, char **argv) {
    uint64_t tasks = 2000;
    uint64_t task_us = 500;
    uint64_t bytes = 1024;
    uint64_t seed = 1;
    const struct option options[] = {
        OPTION_NUMBER("--tasks", &tasks, 1, UINT32_MAX, "tasks"),
        OPTION_NUMBER("--task-us", &task_us, 0, 10000000, "mean time of a task on the first rank's CPU [us]"),
        OPTION_NUMBER("--bytes", &bytes, WORDS * sizeof(uint64_t), 1 << 30,
                      "size of a task and of its result [B]"),
        OPTION_NUMBER("--seed", &seed, 0, UINT64_MAX, "seed of the drawn times"),
    };
    int code = EXIT_NOT_RIGHT;
    if (!application_begin(options, sizeof options / sizeof options[0], &argc, &argv,
                           "a master gives tasks of drawn length to workers and checks what comes back",
                           &code))
        return code;
    struct farm farm = {.tasks = tasks, .seed = seed, .words = (int)(bytes / sizeof(uint64_t))};
    farm.message = calloc((size_t)farm.words, sizeof(uint64_t));
    if (farm.message == NULL) {
        fprintf(stderr, "wulf-farm: not enough memory for messages of %" PRIu64 " bytes\n", bytes);
        ranks_abort(STDERR_FILENO, EXIT_NOT_RIGHT);
    }
    code = run(&farm, (double)task_us);
    free(farm.message);
    MPI_Finalize();
    return code;
}
