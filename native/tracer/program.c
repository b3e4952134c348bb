/* Where a program begins MPI and where it ends it. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracer/collect.h"
#include "tracer/library.h"
#include "tracer/requests.h"
#include "tracer/wrap.h"

#define USUAL_LIMIT ((uint64_t)1 << 30)

static bool is_asked; /* for a trace, of this program */

__attribute__((format(printf, 2, 3))) static void untraced(int rank, const char *why, ...) {
    char text[1024];
    va_list more;
    va_start(more, why);
    vsnprintf(text, sizeof text, why, more);
    va_end(more);
    fprintf(stderr, "wulf-tracer: rank %d is not traced: %s\n", rank, text);
}

static void describe_run(struct trace_header *header) {
    gethostname(header->host, sizeof header->host - 1);
    snprintf(header->library, sizeof header->library, "%s", library_name());
    const int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    const ssize_t got = file < 0 ? -1 : read(file, header->program, sizeof header->program - 1);
    for (ssize_t place = 0; place + 1 < got; place++)
        if (header->program[place] == '\0')
            header->program[place] = ' ';
    if (file >= 0)
        close(file);
}

/* What was asked for, or what the system lets a file have: beyond that a signal would end the program. */
static uint64_t limit(void) {
    const char *text = getenv("WULF_TRACE_LIMIT");
    char *end = NULL;
    const unsigned long long asked = text == NULL ? 0 : strtoull(text, &end, 10);
    const uint64_t bytes = asked > 0 && *end == '\0' ? asked : USUAL_LIMIT;
    struct rlimit allowed;
    return getrlimit(RLIMIT_FSIZE, &allowed) == 0 && allowed.rlim_cur < bytes ? allowed.rlim_cur : bytes;
}

/* Whether this process was started by another MPI program, whose trace says so. */
static bool was_spawned(void) {
    MPI_Comm parent = MPI_COMM_NULL;
    PMPI_Comm_get_parent(&parent);
    return parent != MPI_COMM_NULL;
}

static bool is_open(int rank, int ranks) {
    const char *directory = getenv("WULF_TRACE");
    mkdir(directory, 0700); /* on other nodes it is not there */
    if (stream_open(directory, rank, ranks, limit()) == 0)
        return true;
    if (errno == EEXIST)
        untraced(rank, "the command has started another MPI program before, which is traced");
    else
        untraced(rank, "%s: %s", stream_path(), strerror(errno));
    return false;
}

/* As those that start ranks say, where the library cannot be asked. */
static bool seems_first(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"};
    for (size_t one = 0; one < sizeof names / sizeof names[0]; one++) {
        const char *rank = getenv(names[one]);
        if (rank != NULL)
            return strcmp(rank, "0") == 0;
    }
    return true;
}

static void begin(int provided) {
    const char *directory = getenv("WULF_TRACE");
    const char *built_with = NULL;
    int rank = 0;
    int ranks = 0;
    if (directory == NULL || *directory == '\0')
        return;
    /* Before any handle is used. */
    if (!library_fits(&built_with)) {
        if (seems_first())
            fprintf(
                stderr,
                "wulf-tracer: nothing is traced: the program runs with %s, this tracer is for %s: name the "
                "program's MPI library with --mpi\n",
                library_name(), built_with);
        return;
    }
    if (was_spawned())
        return;
    is_asked = true;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (!is_open(rank, ranks))
        return;
    describe_run(stream.header);
    ticks_calibrate();
    tracer.is_shared = provided == MPI_THREAD_MULTIPLE;
    tracer.begun = tracer.last = ticks_now();
    tracer.is_open = true;
}

OWN(Init, int, (int *argc, char ***argv)) {
    const int code = real_Init(argc, argv);
    if (code == MPI_SUCCESS)
        begin(MPI_THREAD_SINGLE);
    return code;
}

OWN(Init_thread, int, (int *argc, char ***argv, int required, int *provided)) {
    const int code = real_Init_thread(argc, argv, required, provided);
    if (code == MPI_SUCCESS)
        begin(*provided);
    return code;
}

#ifdef MPI_SESSION_NULL
OWN(Session_init, int, (MPI_Info info, MPI_Errhandler handler, MPI_Session *session)) {
    const char *directory = getenv("WULF_TRACE");
    if (tracer.is_open)
        tracer_mark(TRACE_PASSED);
    else if (directory != NULL && *directory != '\0')
        fprintf(stderr,
                "wulf-tracer: sessions of MPI 4 are not traced: there is no trace without MPI_Init\n");
    return real_Session_init(info, handler, session);
}
#endif

OWN(Pcontrol, int, (const int level, ...)) {
    if (!tracer_enter())
        return MPI_SUCCESS;
    tracer_left(ticks_now(), MPI_SUCCESS);
    tracer_add((struct trace_record){.kind = TRACE_PHASE, .peer = TRACE_NOBODY, .tag = level});
    tracer_done();
    return MPI_SUCCESS;
}

OWN(Finalize, int, (void)) {
    const uint64_t now = ticks_now();
    if (tracer.is_open) {
        tracer.is_open = false;
        if (request_some_cancelled())
            tracer_mark(TRACE_CANCELLED);
        tracer_tell_threads();
        if (stream_finish(ticks_to_ns(now - tracer.begun)) != 0)
            fprintf(stderr, "wulf-tracer: %s: %s\n", stream_path(), strerror(errno));
    }
    if (is_asked)
        collect(getenv("WULF_TRACE"), stream_path());
    return real_Finalize();
}
