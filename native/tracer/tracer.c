#include "tracer/tracer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "tracer/stream.h"

#define EXPORT __attribute__((visibility("default")))
#define USUAL_LIMIT ((uint64_t)1 << 30)

static struct {
    bool is_open;
    bool is_shared; /* several threads may call: MPI_THREAD_MULTIPLE */
    uint64_t begun_ns, last_ns;
    /* Of the call that is recorded; the first record takes them. */
    uint64_t entered_ns, left_ns, compute_ns, call_ns;
    bool has_failed;
} own;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int inside; /* threads */
/* The library may call MPI in MPI: the outermost call is the program's. */
static _Thread_local unsigned depth;

uint64_t tracer_enter(void) {
    if (depth++ > 0)
        return 0;
    if (own.is_shared && atomic_fetch_add(&inside, 1) > 0)
        tracer_mark(TRACE_THREADS);
    return clock_now_ns();
}

bool tracer_left(uint64_t entered_ns, int code) {
    if (--depth > 0)
        return false;
    if (own.is_shared) {
        atomic_fetch_sub(&inside, 1);
        pthread_mutex_lock(&lock);
    }
    if (!own.is_open) {
        if (own.is_shared)
            pthread_mutex_unlock(&lock);
        return false;
    }
    own.left_ns = clock_now_ns();
    own.entered_ns = entered_ns;
    own.call_ns = own.left_ns - entered_ns;
    own.compute_ns = entered_ns > own.last_ns ? entered_ns - own.last_ns : 0;
    own.has_failed = code != MPI_SUCCESS;
    return true;
}

void tracer_done(void) {
    own.last_ns = own.left_ns;
    if (own.is_shared)
        pthread_mutex_unlock(&lock);
}

void tracer_vain(void) { own.left_ns = own.last_ns + (own.left_ns - own.entered_ns); }

void tracer_mark(enum trace_unsound what) {
    struct trace_header *header = stream_header();
    if (header != NULL)
        __atomic_fetch_or(&header->unsound, UINT64_C(1) << what, __ATOMIC_RELAXED);
}

void tracer_add_with(struct trace_record record, const void *payload, uint64_t bytes) {
    if (own.compute_ns > UINT32_MAX || own.call_ns > UINT32_MAX) {
        const struct trace_record longer = {
            .kind = TRACE_TIME, .flags = TRACE_PAYLOAD, .peer = TRACE_NOBODY, .bytes = own.compute_ns};
        stream_append(&longer, &own.call_ns, sizeof own.call_ns);
    } else {
        record.compute_ns = (uint32_t)own.compute_ns;
        record.call_ns = (uint32_t)own.call_ns;
    }
    if (own.has_failed)
        record.flags |= TRACE_FAILED;
    if (bytes > 0)
        record.flags |= TRACE_PAYLOAD;
    stream_append(&record, payload, bytes);
    own.compute_ns = own.call_ns = 0;
}

void tracer_add(struct trace_record record) { tracer_add_with(record, NULL, 0); }

void tracer_other(const char *name) {
    tracer_add_with((struct trace_record){.kind = TRACE_OTHER, .peer = TRACE_NOBODY}, name, strlen(name));
}

/* --- the beginning ------------------------------------------------------------------------------------- */

static void describe_run(struct trace_header *header) {
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    gethostname(header->host, sizeof header->host - 1);
    PMPI_Get_library_version(library, &length);
    library[strcspn(library, "\n")] = '\0';
    snprintf(header->library, sizeof header->library, "%.*s", (int)sizeof header->library - 1, library);
    const int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    const ssize_t got = file < 0 ? -1 : read(file, header->program, sizeof header->program - 1);
    for (ssize_t place = 0; place + 1 < got; place++)
        if (header->program[place] == '\0')
            header->program[place] = ' ';
    if (file >= 0)
        close(file);
}

static uint64_t limit(void) {
    const char *text = getenv("WULF_TRACE_LIMIT");
    char *end = NULL;
    const unsigned long long bytes = text == NULL ? 0 : strtoull(text, &end, 10);
    return bytes > 0 && *end == '\0' ? bytes : USUAL_LIMIT;
}

static void begin(int provided) {
    const char *directory = getenv("WULF_TRACE");
    int rank = 0;
    int ranks = 0;
    if (directory == NULL || *directory == '\0')
        return;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    mkdir(directory, 0700); /* on other nodes it is not there */
    if (stream_open(directory, rank, ranks, limit()) != 0) {
        fprintf(stderr, "wulf-tracer: rank %d is not traced: %s: %s\n", rank, stream_path(), strerror(errno));
        return;
    }
    describe_run(stream_header());
    own.is_shared = provided == MPI_THREAD_MULTIPLE;
    own.begun_ns = own.last_ns = clock_now_ns();
    own.is_open = true;
}

EXPORT int MPI_Init(int *argc, char ***argv) {
    const int code = PMPI_Init(argc, argv);
    if (code == MPI_SUCCESS)
        begin(MPI_THREAD_SINGLE);
    return code;
}

EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    const int code = PMPI_Init_thread(argc, argv, required, provided);
    if (code == MPI_SUCCESS)
        begin(*provided);
    return code;
}

EXPORT int MPI_Pcontrol(const int level, ...) {
    const uint64_t entered = tracer_enter();
    if (tracer_left(entered, MPI_SUCCESS)) {
        tracer_add((struct trace_record){.kind = TRACE_PHASE, .peer = TRACE_NOBODY, .tag = level});
        tracer_done();
    }
    return MPI_SUCCESS;
}

/* --- the end ------------------------------------------------------------------------------------------- */

enum { PART = 1 << 20, TAG = 1 };

/* Whether rank 0 has this rank's directory: it is looked for a file that rank 0 has just made. */
static bool is_beside_first(const char *directory, int rank) {
    char path[PATH_MAX] = "";
    if (rank == 0) {
        snprintf(path, sizeof path, "%s/.first.XXXXXX", directory);
        const int file = mkstemp(path);
        if (file < 0)
            path[0] = '\0';
        else
            close(file);
    }
    PMPI_Bcast(path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD);
    const bool is_there = path[0] == '\0' || access(path, F_OK) == 0;
    PMPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0 && path[0] != '\0')
        unlink(path);
    return is_there;
}

/* The file's bytes go to rank 0, first of all how many they are. */
static void hand_over(const char *path, char *part) {
    struct stat status;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    long long left = file >= 0 && fstat(file, &status) == 0 ? (long long)status.st_size : 0;
    PMPI_Send(&left, 1, MPI_LONG_LONG, 0, TAG, MPI_COMM_WORLD);
    while (left > 0) {
        const int want = left < PART ? (int)left : PART;
        if (read(file, part, (size_t)want) != want)
            memset(part, 0, (size_t)want); /* the checksum will not fit, and that is told */
        PMPI_Send(part, want, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
        left -= want;
    }
    if (file >= 0)
        close(file);
    unlink(path);
    rmdir(getenv("WULF_TRACE")); /* by the last rank of the node: before, it is not empty */
}

static void take_over(const char *directory, int rank, char *part) {
    char path[PATH_MAX];
    long long left = 0;
    snprintf(path, sizeof path, "%s/rank.%06d", directory, rank);
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool is_written = file >= 0;
    PMPI_Recv(&left, 1, MPI_LONG_LONG, rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    while (left > 0) {
        const int want = left < PART ? (int)left : PART;
        PMPI_Recv(part, want, MPI_BYTE, rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        is_written = is_written && write(file, part, (size_t)want) == want;
        left -= want;
    }
    if (file < 0 || close(file) != 0 || !is_written)
        fprintf(stderr, "wulf-tracer: cannot write %s\n", path);
}

/* Have all streams where rank 0 is. */
static void collect(const char *path) {
    const char *directory = getenv("WULF_TRACE");
    int rank = 0;
    int ranks = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int is_far = !is_beside_first(directory, rank);
    int *far = rank == 0 ? calloc((size_t)ranks, sizeof *far) : NULL;
    char *part = malloc(PART);
    int is_ready = part != NULL && (rank != 0 || far != NULL);
    PMPI_Allreduce(MPI_IN_PLACE, &is_ready, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (is_ready) {
        PMPI_Gather(&is_far, 1, MPI_INT, far, 1, MPI_INT, 0, MPI_COMM_WORLD);
        for (int other = 0; rank == 0 && other < ranks; other++)
            if (far[other])
                take_over(directory, other, part);
        if (is_far)
            hand_over(path, part);
    }
    free(part);
    free(far);
}

EXPORT int MPI_Finalize(void) {
    const uint64_t now = clock_now_ns();
    const char *directory = getenv("WULF_TRACE");
    if (own.is_open) {
        own.is_open = false;
        if (stream_finish(now - own.begun_ns) != 0)
            fprintf(stderr, "wulf-tracer: %s: %s\n", stream_path(), strerror(errno));
    }
    if (directory != NULL && *directory != '\0')
        collect(stream_path());
    return PMPI_Finalize();
}
