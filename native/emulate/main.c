/* wulf-emulate: performs a pattern with MPI, and times it. All ranks perform, rank 0 prints. */
#include <errno.h>
#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/lines.h"
#include "core/mpi/end.h"
#include "core/mpi/ranks.h"
#include "core/options.h"
#include "core/watchdog.h"
#include "emulate/emulation.h"
#include "emulate/mail.h"
#include "emulate/pass.h"
#include "emulate/results.h"
#include "emulate/shares.h"

#define PROGRAM "wulf-emulate"

enum { OTHERS_PATIENCE_S = 2, PASSES_MOST = 1000, PATIENCE_MOST_S = 86400 };

struct arguments {
    const char *trace, *compute, *whole, *method, *directory;
    struct option_texts programs, iterations;
    uint64_t warm_ups, passes, patience_s;
    bool checks, yields;
};

/* What a launch has of all programs. */
struct course {
    struct emulation emulation;
    size_t programs;
    uint64_t *iterations; /* of all ranks; from number 1 on */
    struct results results;
    struct shares shares;
    struct pass pass;
};

/* --- before it begins ------------------------------------------------------------------------------------
 */

static enum options_result read_arguments(struct arguments *arguments, int argc, char **argv, char *message,
                                          size_t capacity) {
    *arguments = (struct arguments){.compute = "work",
                                    .whole = "run time",
                                    .method = "messages",
                                    .warm_ups = 1,
                                    .passes = 5,
                                    .patience_s = 60};
    const struct option options[] = {
        {.name = "--trace", .text = &arguments->trace, .help = "the pattern, as a trace (.wtrace)"},
        {.name = "--op", .text = &arguments->whole, .help = "what the time of the whole is called"},
        {.name = "--program",
         .texts = &arguments->programs,
         .help = "what the time of a program is called, one after the other; '' is not printed"},
        {.name = "--iteration", .texts = &arguments->iterations, .help = "the same of its iterations"},
        OPTION_NUMBER("--warm-up", &arguments->warm_ups, 0, PASSES_MOST, "passes that do not count"),
        OPTION_NUMBER("--passes", &arguments->passes, 1, PASSES_MOST, "passes that count"),
        OPTION_NUMBER("--patience", &arguments->patience_s, 1, PATIENCE_MOST_S,
                      "without progress for so long a rank counts as gone [s]"),
        {.name = "--compute", .text = &arguments->compute, .help = "work, clock or none"},
        {.name = "--method",
         .text = &arguments->method,
         .help = "how messages of two ranks go: messages, memory (of a node) or file"},
        {.name = "--dir", .text = &arguments->directory, .help = "where the file is, for --method file"},
        {.name = "--check", .flag = &arguments->checks, .help = "check in the first pass what arrives"},
        {.name = "--yield", .flag = &arguments->yields, .help = "ranks share CPUs: say so in hello"},
    };
    const size_t count = sizeof options / sizeof *options;
    const enum options_result result = options_read(options, count, argc, argv, message, capacity);
    if (result == OPTIONS_HELP)
        options_help(options, count, PROGRAM, "performs a pattern with MPI; see docs/protocol.md");
    if (result != OPTIONS_RUN)
        return result;
    struct compute way;
    const char *wrong = arguments->trace == NULL                       ? "--trace: a file must be given"
                        : compute_named(&way, arguments->compute) != 0 ? "--compute takes work, clock or none"
                        : mail_method(arguments->method) < 0 ? "--method takes messages, memory or file"
                        : (mail_method(arguments->method) == METHOD_FILE) != (arguments->directory != NULL)
                            ? "--dir goes with --method file"
                        : arguments->programs.count == 0 ? "--program: name at least one"
                        : arguments->programs.count != arguments->iterations.count
                            ? "--iteration: one for each --program"
                            : NULL;
    if (wrong != NULL)
        snprintf(message, capacity, "%s", wrong);
    return wrong == NULL ? OPTIONS_RUN : OPTIONS_WRONG;
}

/* Whoever is waiting for others says so at last; the word of rank 0 counts, so that others wait longer. */
static int guard(const struct arguments *arguments, int rank, struct failure *failure) {
    const int fd = rank == 0 ? STDOUT_FILENO : STDERR_FILENO;
    const unsigned patience_s = (unsigned)arguments->patience_s + (rank == 0 ? 0 : OTHERS_PATIENCE_S);
    watchdog_on_terminate(fd, "one of the other ranks",
                          "the MPI launcher ended the launch: a process died, or the launch was cancelled");
    if (watchdog_start(fd, "one of the other ranks", patience_s) == 0)
        return 0;
    return failure_set(failure, "system", "", "cannot set up the watchdog: %s", strerror(errno));
}

static int cannot_write(struct failure *failure) {
    return failure_set(failure, "system", "", "cannot write to standard output: %s", strerror(errno));
}

static int say_hello(const struct arguments *arguments, int rank, int ranks, struct failure *failure) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING + 1];
    struct node *nodes = calloc((size_t)ranks, sizeof *nodes);
    if (nodes == NULL)
        return failure_set(failure, "system", "", "no memory for %d ranks", ranks);
    int result = 0;
    if (nodes_gather(MPI_COMM_WORLD, nodes) != MPI_SUCCESS)
        result = failure_set(failure, "mpi", "", "the ranks could not tell each other where they are");
    const struct introduction introduction = {.program = PROGRAM,
                                              .mpi = library_version(version),
                                              .operation = arguments->whole,
                                              .nodes = nodes,
                                              .node_count = (size_t)ranks,
                                              .yields = arguments->yields || library_yields(),
                                              .clock = clock_measure()};
    if (result == 0 && rank == 0 && line_hello(&introduction) != 0)
        result = cannot_write(failure);
    free(nodes);
    return result;
}

/* How often each program is made, of whatever rank; and that there are as many as were named. */
static int agree(struct course *course, const struct arguments *arguments, struct failure *failure) {
    const struct survey *survey = &course->emulation.survey;
    course->programs = arguments->programs.count + 1;
    uint64_t *own = calloc(course->programs, sizeof *own);
    course->iterations = calloc(course->programs, sizeof *course->iterations);
    if (own == NULL || course->iterations == NULL) {
        free(own);
        return failure_set(failure, "system", "", "no memory for programs");
    }
    for (size_t program = 1; program < course->programs && program < survey->programs; program++)
        own[program] = survey->iterations[program];
    const int code =
        MPI_Allreduce(own, course->iterations, (int)course->programs, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    int result = code == MPI_SUCCESS ? 0 : failure_set(failure, "mpi", "", "the ranks could not agree");
    if (survey->programs > course->programs)
        result = failure_set(failure, "trace", "", "the trace has %zu programs, %zu are named",
                             survey->programs - 1, arguments->programs.count);
    for (size_t program = 1; result == 0 && program < course->programs; program++)
        if (course->iterations[program] == 0 || course->iterations[program] > INT32_MAX ||
            (own[program] != 0 && own[program] != course->iterations[program]))
            result = failure_set(failure, "trace", "", "program %zu: its ranks have not as many iterations",
                                 program);
    free(own);
    return result;
}

static int open_course(struct course *course, const struct arguments *arguments, struct failure *failure) {
    struct emulation *emulation = &course->emulation;
    const struct names names = {arguments->whole, arguments->programs.items, arguments->iterations.items};
    compute_named(&emulation->compute, arguments->compute);
    if (emulation_open(emulation, arguments->trace, failure) != 0 || agree(course, arguments, failure) != 0)
        return -1;
    if (shares_new(&course->shares, course->programs, arguments->passes, failure) != 0)
        return -1;
    if (emulation->rank > 0)
        return 0;
    const size_t before = arguments->warm_ups + 1;
    if (results_new(&course->results, &names, course->programs, course->iterations, arguments->passes, before,
                    emulation->ranks, failure) != 0)
        return -1;
    return pass_new(&course->pass, course->iterations, course->programs, emulation->ranks, failure);
}

static void close_course(struct course *course) {
    if (course->emulation.rank == 0) {
        results_free(&course->results);
        pass_free(&course->pass, course->programs);
    }
    shares_free(&course->shares);
    free(course->iterations);
    emulation_close(&course->emulation);
}

/* --- passes ----------------------------------------------------------------------------------------------
 */

static int report_progress(size_t done, size_t all) {
    struct record record = {0};
    record_begin(&record, "progress");
    record_pair_unsigned(&record, "visits_done", done);
    record_pair_unsigned(&record, "visits", all);
    return line_write(&record, STDOUT_FILENO);
}

/* Messages that were wrong on any rank. */
static int sum_wrong(struct course *course, struct failure *failure) {
    uint64_t wrong = 0;
    if (MPI_Reduce(&course->emulation.wrong, &wrong, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD) !=
        MPI_SUCCESS)
        return failure_set(failure, "mpi", "", "the ranks could not tell what was wrong");
    course->results.wrong = wrong;
    return 0;
}

static int make_passes(struct course *course, const struct arguments *arguments, struct failure *failure) {
    struct emulation *emulation = &course->emulation;
    /* What is checked takes longer, so that it must not count. */
    const size_t before = arguments->warm_ups > 0 || !arguments->checks ? arguments->warm_ups : 1;
    const size_t all = before + arguments->passes;
    course->results.begun_ns = clock_now_ns();
    for (size_t number = 0; number < all; number++) {
        const bool is_warm_up = number < before;
        emulation->checks = arguments->checks && number == 0;
        if (pass_make(&course->pass, emulation, course->iterations, course->programs) != 0)
            return -1;
        if (!is_warm_up)
            shares_add(&course->shares, emulation);
        if (emulation->rank > 0)
            continue;
        if (results_add(&course->results, &course->pass, course->iterations, is_warm_up, failure) != 0)
            return -1;
        if (report_progress(number + 1, all) != 0)
            return cannot_write(failure);
    }
    return sum_wrong(course, failure);
}

static int perform(struct course *course, const struct arguments *arguments, uint64_t begin_ns,
                   struct failure *failure) {
    struct emulation *emulation = &course->emulation;
    if (open_course(course, arguments, failure) != 0 ||
        mail_open(emulation, (enum method)mail_method(arguments->method), arguments->directory) != 0 ||
        emulation_perform(emulation, emulation->survey.body) != 0 ||
        make_passes(course, arguments, failure) != 0 ||
        emulation_perform(emulation, emulation->stream.count) != 0 || mail_close(emulation) != 0)
        return -1;
    if (emulation->rank == 0 && results_print(&course->results) != 0)
        return cannot_write(failure);
    if (shares_print(&course->shares, emulation, failure) != 0)
        return -1;
    if (emulation->rank == 0 && line_end((double)(clock_now_ns() - begin_ns) / 1e9) != 0)
        return cannot_write(failure);
    return 0;
}

int main(int argc, char **argv) {
    static struct arguments arguments;
    static struct course course;
    char message[200] = "";
    const enum options_result result = read_arguments(&arguments, argc, argv, message, sizeof message);
    if (result == OPTIONS_WRONG)
        fprintf(stderr, "%s: %s\n", PROGRAM, message);
    if (result == OPTIONS_VERSION)
        printf("%s %s (protocol %d)\n", PROGRAM, WULF_VERSION, WULF_PROTOCOL);
    if (result != OPTIONS_RUN)
        return result == OPTIONS_WRONG ? USAGE_EXIT : 0;
    struct failure failure = {0};
    const uint64_t begin_ns = clock_now_ns();
    int rank = 0;
    int ranks = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (guard(&arguments, rank, &failure) != 0 || say_hello(&arguments, rank, ranks, &failure) != 0 ||
        perform(&course, &arguments, begin_ns, &failure) != 0)
        job_abort(&failure, rank);
    close_course(&course);
    MPI_Finalize();
    return 0;
}
