#include "profile/profile.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/record.h"

#define EXPORT __attribute__((visibility("default")))

/* Sizes by powers of two: class n holds those below 2^n B and from 2^(n-1) B on; class 0 is empty messages.
 */
enum { SIZES = 33, PARTNERS_MOST = 4096, WORD_BITS = 64 };

/* Of one rank. Threads may call at the same time. */
static struct {
    atomic_uint_fast64_t ns[KINDS], calls[KINDS];
    atomic_uint_fast64_t messages[KINDS][SIZES], bytes[KINDS][SIZES];
    atomic_uint_fast64_t partners[PARTNERS_MOST / WORD_BITS];
    atomic_uint_fast64_t started, threads;
    uint64_t begun_ns;
} own;

/* As it is sent to rank 0. */
struct summary {
    uint64_t run_ns, partners, started, threads;
    uint64_t ns[KINDS], calls[KINDS];
    uint64_t messages[KINDS][SIZES], bytes[KINDS][SIZES];
};

static const char *const KIND_NAMES[KINDS] = {"point to point", "waiting", "collective", "one-sided"};

/* A library may call MPI in MPI: the outermost call has the time. */
static _Thread_local unsigned depth;
static _Thread_local bool known;

static void add(atomic_uint_fast64_t *counter, uint64_t value) {
    atomic_fetch_add_explicit(counter, value, memory_order_relaxed);
}

uint64_t profile_enter(void) { return depth++ == 0 ? clock_now_ns() : 0; }

void profile_leave(uint64_t entered_ns, enum kind kind) {
    if (--depth > 0)
        return;
    add(&own.ns[kind], clock_now_ns() - entered_ns);
    add(&own.calls[kind], 1);
    if (!known)
        add(&own.threads, 1);
    known = true;
}

void profile_moved(enum kind kind, int count, MPI_Datatype type) {
    int size = 0;
    if (depth > 0 || PMPI_Type_size(type, &size) != MPI_SUCCESS || size < 0 || count < 0)
        return;
    const uint64_t bytes = (uint64_t)count * (uint64_t)size;
    unsigned class = 0;
    while (class + 1 < SIZES && bytes >> class != 0)
        class ++;
    add(&own.messages[kind][class], 1);
    add(&own.bytes[kind][class], bytes);
}

void profile_to_all(int count, MPI_Datatype type, MPI_Comm comm) {
    int ranks = 1;
    PMPI_Comm_size(comm, &ranks);
    for (int rank = 1; rank < ranks; rank++)
        profile_moved(KIND_COLLECTIVE, count, type);
}

void profile_to_each(const int counts[], MPI_Datatype type, MPI_Comm comm) {
    int ranks = 1;
    int self = 0;
    PMPI_Comm_size(comm, &ranks);
    PMPI_Comm_rank(comm, &self);
    for (int rank = 0; rank < ranks; rank++)
        if (rank != self)
            profile_moved(KIND_COLLECTIVE, counts[rank], type);
}

void profile_started(int count) { add(&own.started, (uint64_t)count); }

void profile_partner(int rank, MPI_Comm comm) {
    int same = MPI_UNEQUAL;
    /* Ranks of another communicator have other numbers. */
    if (rank < 0 || rank >= PARTNERS_MOST)
        return;
    if (comm != MPI_COMM_WORLD &&
        (PMPI_Comm_compare(comm, MPI_COMM_WORLD, &same) != MPI_SUCCESS || same > MPI_CONGRUENT))
        return;
    atomic_fetch_or_explicit(&own.partners[rank / WORD_BITS], 1ULL << (rank % WORD_BITS),
                             memory_order_relaxed);
}

EXPORT int MPI_Init(int *argc, char ***argv) {
    const int code = PMPI_Init(argc, argv);
    own.begun_ns = clock_now_ns();
    return code;
}

EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    const int code = PMPI_Init_thread(argc, argv, required, provided);
    own.begun_ns = clock_now_ns();
    return code;
}

static void summarise(struct summary *summary) {
    memset(summary, 0, sizeof *summary);
    summary->run_ns = clock_now_ns() - own.begun_ns;
    summary->started = own.started;
    summary->threads = own.threads;
    for (size_t word = 0; word < PARTNERS_MOST / WORD_BITS; word++)
        summary->partners += (uint64_t)__builtin_popcountll(own.partners[word]);
    for (size_t kind = 0; kind < KINDS; kind++) {
        summary->ns[kind] = own.ns[kind];
        summary->calls[kind] = own.calls[kind];
        for (size_t class = 0; class < SIZES; class ++) {
            summary->messages[kind][class] = own.messages[kind][class];
            summary->bytes[kind][class] = own.bytes[kind][class];
        }
    }
}

static void add_ranks(struct record *record, const struct summary *all, size_t ranks) {
    record_key(record, "ranks");
    record_open(record, '[');
    for (size_t rank = 0; rank < ranks; rank++) {
        record_open(record, '{');
        record_pair_unsigned(record, "run_ns", all[rank].run_ns);
        record_pair_unsigned(record, "partners", all[rank].partners);
        record_pair_unsigned(record, "started", all[rank].started);
        record_pair_unsigned(record, "threads", all[rank].threads);
        uint64_t calls = 0;
        for (size_t kind = 0; kind < KINDS; kind++)
            calls += all[rank].calls[kind];
        record_pair_unsigned(record, "calls", calls);
        record_key(record, "ns");
        record_open(record, '{');
        for (size_t kind = 0; kind < KINDS; kind++)
            record_pair_unsigned(record, KIND_NAMES[kind], all[rank].ns[kind]);
        record_close(record, '}');
        record_close(record, '}');
    }
    record_close(record, ']');
}

/* The messages of all ranks, by kind and size. */
static void add_messages(struct record *record, const struct summary *all, size_t ranks) {
    record_key(record, "messages");
    record_open(record, '[');
    for (size_t kind = 0; kind < KINDS; kind++)
        for (size_t class = 0; class < SIZES; class ++) {
            uint64_t messages = 0;
            uint64_t bytes = 0;
            for (size_t rank = 0; rank < ranks; rank++) {
                messages += all[rank].messages[kind][class];
                bytes += all[rank].bytes[kind][class];
            }
            if (messages == 0)
                continue;
            record_open(record, '{');
            record_pair_string(record, "kind", KIND_NAMES[kind]);
            record_pair_unsigned(record, "below_bytes", 1ULL << class);
            record_pair_unsigned(record, "count", messages);
            record_pair_unsigned(record, "bytes", bytes);
            record_close(record, '}');
        }
    record_close(record, ']');
}

static int write_profile(const char *path, const struct summary *all, size_t ranks) {
    struct record record = {0};
    const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (file < 0)
        return -1;
    record_begin(&record, "profile");
    record_pair_string(&record, "version", WULF_VERSION);
    add_ranks(&record, all, ranks);
    add_messages(&record, all, ranks);
    record_close(&record, '}');
    const int written = record_write(&record, file);
    record_free(&record);
    return close(file) == 0 ? written : -1;
}

static void gather(const char *path) {
    struct summary summary;
    struct summary *all = NULL;
    int rank = 0;
    int ranks = 0;
    summarise(&summary);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (rank == 0)
        all = calloc((size_t)ranks, sizeof *all);
    /* Without the memory for it rank 0 cannot take part, and the others would wait for ever: they end it. */
    if (rank == 0 && all == NULL)
        PMPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    PMPI_Gather(&summary, (int)sizeof summary, MPI_BYTE, all, (int)sizeof summary, MPI_BYTE, 0,
                MPI_COMM_WORLD);
    if (rank == 0 && write_profile(path, all, (size_t)ranks) != 0)
        fprintf(stderr, "wulf-profile: cannot write %s\n", path);
    free(all);
}

EXPORT int MPI_Finalize(void) {
    const char *path = getenv("WULF_PROFILE");
    if (path != NULL && *path != '\0')
        gather(path);
    return PMPI_Finalize();
}
