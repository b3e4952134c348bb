/* What the tracer adds to a call of MPI, in one rank: short batches of calls as the program makes them and of
 * the library's own functions, past every library before it, by turns in random order.
 *
 *     LD_PRELOAD=libwulf-tracer.so WULF_TRACE=DIRECTORY calls BLOCKS SEED single|multiple
 *
 * Every block has a batch of three arms: as the program calls, the library's own, and that once more, which
 * tells how much two arms differ that do not. Prints a JSON object for each loop:
 *     {"loop": "allreduce", "bare_ns": …, "added_ns": …, "again_ns": …, "cpu_ns": …}
 * bare, added and again: medians over the blocks, of a call [ns]; cpu: the CPU time that all batches of the
 * first arm took more than those of the second, of a call [ns]: it has in it what only some calls do. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 200, ARMS = 3, GIVEN = 0, BARE = 1, AGAIN = 2 };

#define CALLS(of)                                                                                            \
    of(Allreduce) of(Isend) of(Irecv) of(Recv) of(Send) of(Wait) of(Waitall) of(Startall) of(Iprobe)
#define POINTER(name) __typeof__(&MPI_##name) name;
#define TAKE(name) .name = MPI_##name,
#define LOOK_UP(name) own.name = (__typeof__(own.name))look_up(library, "PMPI_" #name);

struct calls {
    CALLS(POINTER)
};

static int from[2], to[2], place;
static MPI_Request requests[2], kept[2];

static void *look_up(void *library, const char *name) {
    void *found = dlsym(library, name);
    if (found == NULL) {
        fprintf(stderr, "calls: no %s\n", name);
        exit(1);
    }
    return found;
}

/* The library's own functions: looked up in itself, not where the program would find them. */
static struct calls find_own(void) {
    struct calls own;
    Dl_info where;
    dladdr(dlsym(RTLD_DEFAULT, "MPI_Comm_rank"), &where); /* it has no wrapper */
    void *library = dlopen(where.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    CALLS(LOOK_UP)
    return own;
}

static void reduce(const struct calls *mpi) { mpi->Allreduce(from, to, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF); }

static void message(const struct calls *mpi) {
    mpi->Irecv(to, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &requests[0]);
    mpi->Send(from, 1, MPI_INT, 0, 0, MPI_COMM_SELF);
    mpi->Wait(&requests[0], MPI_STATUS_IGNORE);
}

static void blocking(const struct calls *mpi) {
    mpi->Isend(from, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &requests[0]);
    mpi->Recv(to, 1, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    mpi->Wait(&requests[0], MPI_STATUS_IGNORE);
}

static void both(const struct calls *mpi) {
    mpi->Irecv(to, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &requests[0]);
    mpi->Isend(from, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &requests[1]);
    mpi->Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void persistent(const struct calls *mpi) {
    mpi->Startall(2, kept);
    mpi->Waitall(2, kept, MPI_STATUSES_IGNORE);
}

static void look(const struct calls *mpi) { mpi->Iprobe(0, 1, MPI_COMM_SELF, &place, MPI_STATUS_IGNORE); }

static double seconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int by_size(const void *one, const void *other) {
    const double first = *(const double *)one, second = *(const double *)other;
    return (first > second) - (first < second);
}

static double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, by_size);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static void shuffle(int *order) {
    for (int last = ARMS - 1; last > 0; last--) {
        const int other = rand() % (last + 1), kept_arm = order[last];
        order[last] = order[other];
        order[other] = kept_arm;
    }
}

static void measure(const char *name, void (*loop)(const struct calls *), int calls, int blocks,
                    const struct calls arms[ARMS]) {
    double *bare = malloc((size_t)blocks * sizeof *bare), *added = malloc((size_t)blocks * sizeof *added);
    double *again = malloc((size_t)blocks * sizeof *again), cpu[ARMS] = {0};
    for (int block = 0; block < blocks; block++) {
        int order[ARMS] = {GIVEN, BARE, AGAIN};
        double took[ARMS];
        shuffle(order);
        for (int turn = 0; turn < ARMS; turn++) {
            const struct calls *arm = &arms[order[turn]];
            loop(arm); /* what the arm before left in the caches is not its own */
            const double cpu_begin = seconds(CLOCK_THREAD_CPUTIME_ID), begin = seconds(CLOCK_MONOTONIC);
            for (int round = 0; round < ROUNDS; round++)
                loop(arm);
            took[order[turn]] = seconds(CLOCK_MONOTONIC) - begin;
            cpu[order[turn]] += seconds(CLOCK_THREAD_CPUTIME_ID) - cpu_begin;
        }
        bare[block] = took[BARE];
        added[block] = took[GIVEN] - took[BARE];
        again[block] = took[AGAIN] - took[BARE];
    }
    const double of_a_call = 1e9 / (ROUNDS * calls);
    printf(
        "{\"loop\": \"%s\", \"bare_ns\": %.3f, \"added_ns\": %.3f, \"again_ns\": %.3f, \"cpu_ns\": %.3f}\n",
        name, median(bare, blocks) * of_a_call, median(added, blocks) * of_a_call,
        median(again, blocks) * of_a_call, (cpu[GIVEN] - cpu[BARE]) / blocks * of_a_call);
    free(bare);
    free(added);
    free(again);
}

int main(int count, char **words) {
    int provided = MPI_THREAD_SINGLE;
    const int wanted =
        count > 3 && strcmp(words[3], "multiple") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
    const int blocks = count > 1 ? atoi(words[1]) : 100;
    MPI_Init_thread(&count, &words, wanted, &provided);
    if (provided < wanted) {
        fprintf(stderr, "calls: this library has no threads\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    srand(count > 2 ? (unsigned)atoi(words[2]) : 1);
    const struct calls own = find_own();
    const struct calls arms[ARMS] = {{CALLS(TAKE)}, own, own};
    MPI_Recv_init(to, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &kept[0]);
    MPI_Send_init(from, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &kept[1]);
    measure("allreduce", reduce, 1, blocks, arms);
    measure("irecv+send+wait", message, 3, blocks, arms);
    measure("isend+recv+wait", blocking, 3, blocks, arms);
    measure("irecv+isend+waitall", both, 3, blocks, arms);
    measure("startall+waitall", persistent, 2, blocks, arms);
    measure("iprobe", look, 1, blocks, arms);
    MPI_Request_free(&kept[0]);
    MPI_Request_free(&kept[1]);
    MPI_Finalize();
    return 0;
}
