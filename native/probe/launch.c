#include "probe/launch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"

static const uint64_t PROGRESS_EVERY_NS = 200000000; /* five lines a second */

static int cannot_write(struct failure *failure) {
    return failure_set(failure, "system", "", "cannot write to standard output: %s", strerror(errno));
}

/* `context` is the time of the last line [ns]. A line that cannot be written shows at the next cell. */
static void show_progress(const struct progress *progress, void *context) {
    uint64_t *last_ns = context;
    const uint64_t now = clock_now_ns();
    if (now - *last_ns < PROGRESS_EVERY_NS)
        return;
    *last_ns = now;
    report_progress(progress);
}

static void say_nothing(const struct progress *progress, void *context) {
    (void)progress;
    (void)context;
}

static int print(const struct record *record, const struct company *company, struct failure *failure) {
    (void)company;
    return line_copy(record->text, record->length) == 0 ? 0 : cannot_write(failure);
}

typedef int (*use_function)(const struct record *, const struct company *, struct failure *);

/* Use a line and forget it. */
static int use_line(struct record *record, const struct company *company, use_function use,
                    struct failure *failure) {
    const int status = record->failed ? failure_set(failure, "system", "", "no memory for a line")
                                      : use(record, company, failure);
    record_free(record);
    return status;
}

static int use_all(const char *name, const struct plan *plan, const struct cell *cells,
                   const struct references *references, const struct scheduling *scheduling,
                   const struct company *company, use_function use, struct failure *failure) {
    static const char *const ARMS[] = {"a", "b"};
    struct scope scope = {.ranks = company == NULL ? NULL : company->ranks};
    for (size_t arm = 0; arm < plan_arms(plan); arm++) {
        scope.arm = plan->arms == NULL ? NULL : ARMS[arm];
        for (size_t i = 0; i < plan->count; i++) {
            struct record record = {0};
            record_cell(&record, name, plan->operation, &cells[arm * plan->count + i], scope);
            if (use_line(&record, company, use, failure) != 0)
                return -1;
        }
        if (references[arm].count == 0)
            continue;
        struct record record = {0};
        record_references(&record, &references[arm], scope);
        if (use_line(&record, company, use, failure) != 0)
            return -1;
    }
    struct record record = {0};
    scope.arm = NULL;
    record_scheduling(&record, scheduling, scope);
    return use_line(&record, company, use, failure);
}

/* Measure all cells, then use their lines; `last_line_ns` is NULL for one that says nothing meanwhile. */
static int measure(const struct arguments *arguments, struct clock_info clock, const struct channel *channel,
                   const struct company *company, use_function use, uint64_t *last_line_ns,
                   struct failure *failure) {
    const struct plan plan = {
        .operation = operation_find(arguments->op),
        .parameter = arguments->parameter,
        .sizes = arguments->sizes,
        .count = arguments->size_count,
        .sweeps = arguments->sweeps,
        .visit_us = arguments->visit_us,
        .reference_us = arguments->reference_us,
        .seed = arguments->seed,
        .alternate = arguments->alternate,
        .arms = arguments->arms,
        .dwell_sweeps = arguments->dwell_sweeps,
        .settle_sweeps = arguments->settle_sweeps,
        .clock = clock,
        .together = company == NULL ? NULL : company->together,
        .company = company == NULL ? NULL : company->context,
    };
    const size_t ranks = channel == NULL ? 1 : channel->peers + 1;
    struct references references[2] = {0};
    struct scheduling scheduling = {.ranks = ranks, .of = calloc(ranks, sizeof *scheduling.of)};
    struct cell *cells = cells_new(&plan, ranks);
    int status = scheduling.of == NULL ? -1 : 0;
    for (size_t arm = 0; status == 0 && arm < plan_arms(&plan); arm++)
        status = references_new(&references[arm], &plan, channel);
    if (cells == NULL || status != 0)
        status = failure_set(failure, "system", "", "no memory for %zu sizes", plan.count);
    if (status == 0)
        status = sweep_run(&plan, channel, cells, references, &scheduling,
                           last_line_ns == NULL ? say_nothing : show_progress, last_line_ns, failure);
    if (status == 0)
        status = use_all(arguments->label, &plan, cells, references, &scheduling, company, use, failure);
    for (size_t arm = 0; arm < plan_arms(&plan); arm++)
        references_free(&references[arm]);
    free(scheduling.of);
    cells_free(cells, plan.count * plan_arms(&plan));
    return status;
}

int launch_run(const struct arguments *arguments, struct introduction *introduction,
               const struct channel *channel, const struct company *company, struct failure *failure) {
    uint64_t last_line_ns = clock_now_ns();
    const uint64_t begin_ns = last_line_ns;
    introduction->clock = clock_measure();
    introduction->operation = arguments->label;
    introduction->seed = arguments->seed;
    if (line_hello(introduction) != 0)
        return cannot_write(failure);
    if (measure(arguments, introduction->clock, channel, company, print, &last_line_ns, failure) != 0)
        return -1;
    if (company != NULL && company->collect(company->context, failure) != 0)
        return -1;
    return line_end((double)(clock_now_ns() - begin_ns) / 1e9) == 0 ? 0 : cannot_write(failure);
}

int launch_measure(const struct arguments *arguments, const struct channel *channel,
                   const struct company *company, use_function use, struct failure *failure) {
    return measure(arguments, clock_measure(), channel, company, use, NULL, failure);
}

int launch_begin(struct arguments *arguments, enum program program, int argc, char *const argv[],
                 int *exit_code) {
    const char *name = program == PROGRAM_MPI ? "wulf-probe-mpi" : "wulf-probe-net";
    char error[ARGUMENT_ERROR_BYTES];
    *exit_code = 0;
    if (arguments_parse(arguments, program, argc, argv, error) != 0) {
        fprintf(stderr, "%s: %s\n", name, error);
        *exit_code = USAGE_EXIT;
        return -1;
    }
    if (arguments->help) {
        printf("%s: measures the interconnect; see docs/protocol.md\n", name);
        arguments_help(program);
        return -1;
    }
    if (arguments->version) {
        printf("%s %s (protocol %d)\n", name, WULF_VERSION, WULF_PROTOCOL);
        return -1;
    }
    if (arguments->list) {
        *exit_code = report_list() == 0 ? 0 : FAILURE_EXIT;
        return -1;
    }
    return 0;
}
