/* wulf-is: whole numbers are ranked again and again: each rank gives all keys to whom their range belongs. By
 * section 2.7 of the specification of the NAS Parallel Benchmarks ("integer sort"). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/nas.h"
#include "core/clock.h"

enum { TESTED = 5, ITERATIONS = 10, BUCKETS = 1 << 10 };
static const uint64_t SEED = 314159265;

/* Keys whose rank is known: their places, their ranks, and by how much these move: the first `rising` of them
 * grow with each iteration, from `from` on, the others shrink. */
struct class {
    uint64_t keys;
    uint32_t span;
    uint64_t places[TESTED], ranks[TESTED];
    int rising, rise_from, fall_from;
};

static const struct class CLASSES[] = {
    {1 << 16, 1 << 11, {48427, 17148, 23627, 62548, 4431}, {0, 18, 346, 64917, 65463}, 3, 0, 0},
    {1 << 20,
     1 << 16,
     {357773, 934767, 875723, 898999, 404505},
     {1249, 11698, 1039987, 1043896, 1048018},
     2,
     2,
     0},
    {1 << 23,
     1 << 19,
     {2112377, 662041, 5336171, 3642833, 4250760},
     {104, 17523, 123928, 8288932, 8388264},
     3,
     1,
     1},
};

/* One rank's part in it. */
struct sort {
    const struct class *class;
    struct account *account;
    int rank, ranks;
    uint64_t begin, end;      /* of all keys, those that it has made */
    uint32_t *keys, *ordered; /* the same by buckets */
    uint32_t *got;            /* what has come to it */
    uint64_t room, count;     /* for so many, and so many have */
    uint32_t first, last;     /* keys that belong to it: first ≤ key < last */
    uint32_t *at_most;        /* of these, how many are no larger */
    int *out, *out_at, *in, *in_at;
};

static void make_keys(const struct sort *sort) {
    uint64_t state = nas_after(SEED, 4 * sort->begin);
    const double quarter = (double)sort->class->span / 4;
    for (uint64_t i = 0; i < sort->end - sort->begin; i++) {
        double sum = nas_next(&state);
        for (int more = 0; more < 3; more++)
            sum += nas_next(&state);
        sort->keys[i] = (uint32_t)(quarter * sum);
    }
}

/* Two keys are others in each iteration. */
static void change(const struct sort *sort, uint64_t place, uint32_t key) {
    if (place >= sort->begin && place < sort->end)
        sort->keys[place - sort->begin] = key;
}

static uint32_t bucket_of(const struct sort *sort, uint32_t key) {
    return (uint32_t)((uint64_t)key * BUCKETS / sort->class->span);
}

/* Which rank gets each bucket: each about as many keys. Says where this rank's keys begin and end. */
static void divide(struct sort *sort, const uint64_t *all, int *owner) {
    uint64_t before = 0;
    const uint64_t width = sort->class->span / BUCKETS;
    sort->first = sort->last = 0;
    for (uint32_t bucket = 0; bucket < BUCKETS; bucket++) {
        owner[bucket] = (int)(before * (uint64_t)sort->ranks / sort->class->keys);
        before += all[bucket];
        if (owner[bucket] < sort->rank)
            sort->first = (uint32_t)((bucket + 1) * width);
        if (owner[bucket] <= sort->rank)
            sort->last = (uint32_t)((bucket + 1) * width);
    }
}

/* Own keys by buckets, and how many go to each rank. */
static void order(struct sort *sort, const uint64_t *own, const int *owner) {
    uint64_t next[BUCKETS] = {0};
    memset(sort->out, 0, (size_t)sort->ranks * sizeof *sort->out);
    for (uint32_t bucket = 0; bucket < BUCKETS; bucket++) {
        sort->out[owner[bucket]] += (int)own[bucket];
        if (bucket + 1 < BUCKETS)
            next[bucket + 1] = next[bucket] + own[bucket];
    }
    for (uint64_t i = 0; i < sort->end - sort->begin; i++)
        sort->ordered[next[bucket_of(sort, sort->keys[i])]++] = sort->keys[i];
}

static int places(const int *counts, int *at, int ranks) {
    int all = 0;
    for (int rank = 0; rank < ranks; rank++) {
        at[rank] = all;
        all += counts[rank];
    }
    return all;
}

/* Every key goes to the rank that its range belongs to. */
static int deal(struct sort *sort) {
    account_enter(sort->account);
    int code = MPI_Alltoall(sort->out, 1, MPI_INT, sort->in, 1, MPI_INT, MPI_COMM_WORLD);
    account_leave(sort->account);
    const int sent = places(sort->out, sort->out_at, sort->ranks);
    sort->count = (uint64_t)places(sort->in, sort->in_at, sort->ranks);
    if (sort->count > sort->room) {
        free(sort->got);
        sort->room = 2 * sort->count;
        sort->got = malloc(sort->room * sizeof *sort->got);
        if (sort->got == NULL)
            return MPI_ERR_NO_MEM;
    }
    account_enter(sort->account);
    if (code == MPI_SUCCESS)
        code = MPI_Alltoallv(sort->ordered, sort->out, sort->out_at, MPI_UINT32_T, sort->got, sort->in,
                             sort->in_at, MPI_UINT32_T, MPI_COMM_WORLD);
    account_leave(sort->account);
    account_sent(sort->account, (uint64_t)sent * sizeof(uint32_t));
    return code;
}

/* Of the keys that are tested the values, on all ranks. */
static int tested(const struct sort *sort, uint32_t *keys) {
    for (int i = 0; i < TESTED; i++) {
        const uint64_t place = sort->class->places[i];
        keys[i] = place >= sort->begin && place < sort->end ? sort->keys[place - sort->begin] : 0;
    }
    return MPI_Allreduce(MPI_IN_PLACE, keys, TESTED, MPI_UINT32_T, MPI_SUM, MPI_COMM_WORLD);
}

/* The rank of a key is how many are smaller: those of the ranks before, and own ones. */
static int check(const struct sort *sort, const uint32_t *keys, int iteration, bool *right) {
    const struct class *class = sort->class;
    uint64_t before = 0;
    uint64_t found[TESTED] = {0};
    int code = MPI_Exscan(&sort->count, &before, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (sort->rank == 0)
        before = 0;
    for (int i = 0; i < TESTED; i++)
        if (keys[i] >= sort->first && keys[i] < sort->last)
            found[i] = before + (keys[i] > sort->first ? sort->at_most[keys[i] - 1 - sort->first] : 0);
    if (code == MPI_SUCCESS)
        code = MPI_Allreduce(MPI_IN_PLACE, found, TESTED, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < TESTED; i++) {
        const int64_t moved = i < class->rising ? iteration - class->rise_from : class->fall_from - iteration;
        *right = *right && (int64_t)found[i] == (int64_t)class->ranks[i] + moved;
    }
    return code;
}

static int iterate(struct sort *sort, int iteration, bool *right) {
    uint64_t own[BUCKETS] = {0};
    uint64_t all[BUCKETS];
    int owner[BUCKETS];
    uint32_t keys[TESTED];
    change(sort, (uint64_t)iteration, (uint32_t)iteration);
    change(sort, (uint64_t)iteration + ITERATIONS, sort->class->span - (uint32_t)iteration);
    int code = tested(sort, keys);
    for (uint64_t i = 0; i < sort->end - sort->begin; i++)
        own[bucket_of(sort, sort->keys[i])]++;
    account_enter(sort->account);
    if (code == MPI_SUCCESS)
        code = MPI_Allreduce(own, all, BUCKETS, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    account_leave(sort->account);
    account_sent(sort->account, sizeof own);
    if (code != MPI_SUCCESS)
        return code;
    divide(sort, all, owner);
    order(sort, own, owner);
    code = deal(sort);
    if (code != MPI_SUCCESS)
        return code;
    const uint32_t width = sort->last - sort->first;
    memset(sort->at_most, 0, ((size_t)width + 1) * sizeof *sort->at_most);
    for (uint64_t i = 0; i < sort->count; i++) {
        if (sort->got[i] < sort->first || sort->got[i] >= sort->last)
            return MPI_ERR_OTHER; /* a key that is not this rank's */
        sort->at_most[sort->got[i] - sort->first]++;
    }
    for (uint32_t key = 1; key < width; key++)
        sort->at_most[key] += sort->at_most[key - 1];
    return check(sort, keys, iteration, right);
}

/* Every rank has the keys of its range and no other, and none is lost: in order of the counts they are
 * sorted. */
static int check_all(const struct sort *sort, bool *right) {
    uint64_t all = sort->count;
    int wrong = sort->last > sort->first && sort->at_most[sort->last - 1 - sort->first] != sort->count;
    for (uint64_t i = 0; i < sort->count; i++)
        wrong = wrong || sort->got[i] < sort->first || sort->got[i] >= sort->last;
    int code = MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
    if (code == MPI_SUCCESS)
        code = MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    *right = *right && !wrong && all == sort->class->keys;
    return code;
}

static int sort_all(struct sort *sort, bool *right) {
    bool ignored = true;
    make_keys(sort);
    /* One iteration more, without the clock, finds cold pages. */
    int code = iterate(sort, 1, &ignored);
    sort->account->communication_ns = sort->account->messages = sort->account->bytes = 0;
    *right = true;
    if (code == MPI_SUCCESS)
        code = MPI_Barrier(MPI_COMM_WORLD);
    const uint64_t begin_ns = clock_now_ns();
    for (int iteration = 1; iteration <= ITERATIONS && code == MPI_SUCCESS; iteration++)
        code = iterate(sort, iteration, right);
    sort->account->run_ns = clock_now_ns() - begin_ns;
    return code == MPI_SUCCESS ? check_all(sort, right) : code;
}

static int kernel(int number, struct account *account, bool *right) {
    struct sort sort = {.class = &CLASSES[number], .account = account};
    MPI_Comm_rank(MPI_COMM_WORLD, &sort.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &sort.ranks);
    sort.begin = nas_begin(sort.class->keys, sort.rank, sort.ranks);
    sort.end = nas_begin(sort.class->keys, sort.rank + 1, sort.ranks);
    const size_t own = (size_t)(sort.end - sort.begin) + 1;
    sort.keys = malloc(own * sizeof *sort.keys);
    sort.ordered = malloc(own * sizeof *sort.ordered);
    sort.at_most = malloc(((size_t)sort.class->span + 2) * sizeof *sort.at_most);
    int *const counts = calloc(4 * (size_t)sort.ranks, sizeof *counts);
    int code = MPI_ERR_NO_MEM;
    if (sort.keys != NULL && sort.ordered != NULL && sort.at_most != NULL && counts != NULL) {
        sort.out = counts;
        sort.out_at = sort.out + sort.ranks;
        sort.in = sort.out_at + sort.ranks;
        sort.in_at = sort.in + sort.ranks;
        code = sort_all(&sort, right);
    }
    free(counts);
    free(sort.at_most);
    free(sort.got);
    free(sort.ordered);
    free(sort.keys);
    return code;
}

int main(int argc, char **argv) {
    return nas_main(argc, argv, "is", "whole numbers are ranked: all keys go to other ranks, again and again",
                    kernel);
}
