#include "probe/report.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/record.h"

static int write_and_free(struct record *record, int fd) {
    record_close(record, '}');
    const int status = record_write(record, fd);
    record_free(record);
    return status;
}

static const char *transport_name(enum link_kind link) {
    static const char *const names[] = {[LINK_NONE] = "none", [LINK_MPI] = "mpi", [LINK_NET] = "net"};
    return names[link];
}

/* How many ranks take part; 0: as many as there are. */
static uint64_t ranks_of(const struct operation *operation) {
    if (operation->group)
        return 0;
    return operation->link == LINK_NONE ? 1 : 2;
}

static void list_operation(struct record *record, const struct operation *operation) {
    record_open(record, '{');
    record_pair_string(record, "name", operation->name);
    record_pair_string(record, "transport", transport_name(operation->link));
    record_pair_unsigned(record, "ranks", ranks_of(operation));
    record_pair_string(record, "pattern", operation->pattern == NULL ? "none" : operation->pattern);
    record_pair_string(record, "axis", "message size");
    record_pair_string(record, "axis_unit", "B");
    record_pair_string(record, "quantity", operation->quantity);
    record_pair_double(record, "divisor", operation->divisor, 0);
    record_pair_string(record, "better", operation->higher_is_better ? "higher" : "lower");
    record_pair_bool(record, "moves_bytes", operation->moves_bytes);
    record_key(record, "overlaps");
    if (operation->overlaps == NULL)
        record_null(record);
    else
        record_string(record, operation->overlaps);
    record_pair_unsigned(record, "usual", operation->usual);
    record_pair_string(record, "timing", operation->timing == TIMING_BATCH ? "batch" : "iteration");
    record_pair_unsigned(record, "min_size_bytes", operation->min_size);
    record_pair_unsigned(record, "max_size_bytes", operation->max_size);
    record_pair_unsigned(record, "size_step_bytes", operation->size_step > 0 ? operation->size_step : 1);
    record_pair_bool(record, "lossy", operation->lossy);
    record_key(record, "parameter");
    if (operation->parameter.name == NULL)
        record_null(record);
    else {
        record_open(record, '{');
        record_pair_string(record, "name", operation->parameter.name);
        record_pair_unsigned(record, "usual", operation->parameter.usual);
        record_pair_unsigned(record, "low", operation->parameter.low);
        record_pair_unsigned(record, "high", operation->parameter.high);
        record_close(record, '}');
    }
    record_pair_string(record, "summary", operation->summary);
    record_close(record, '}');
}

int report_list(void) {
    struct record record = {0};
    record_open(&record, '[');
    for (size_t i = 0; operation_at(i) != NULL; i++)
        list_operation(&record, operation_at(i));
    record_close(&record, ']');
    const int status = record_write(&record, STDOUT_FILENO);
    record_free(&record);
    return status;
}

static void add_nodes(struct record *record, const struct node *nodes, size_t count) {
    record_key(record, "hosts");
    record_open(record, '[');
    for (size_t i = 0; i < count; i++)
        record_string(record, nodes[i].host);
    record_close(record, ']');
    record_key(record, "cpus");
    record_open(record, '[');
    for (size_t i = 0; i < count; i++) {
        record_open(record, '[');
        for (unsigned cpu = 0; cpu < NODE_CPU_BYTES * 8; cpu++)
            if (node_has_cpu(&nodes[i], cpu))
                record_unsigned(record, cpu);
        record_close(record, ']');
    }
    record_close(record, ']');
}

static void add_eager_limits(struct record *record, const struct limit *limits, size_t count) {
    record_key(record, "eager_limits");
    record_open(record, '{');
    for (size_t i = 0; i < count; i++)
        record_pair_unsigned(record, limits[i].name, limits[i].bytes);
    record_close(record, '}');
}

int report_hello(const struct introduction *introduction) {
    struct record record = {0};
    record_begin(&record, "hello");
    record_pair_unsigned(&record, "protocol", WULF_PROTOCOL);
    record_pair_string(&record, "version", WULF_VERSION);
    record_pair_string(&record, "program", introduction->program);
    record_key(&record, "mpi");
    if (introduction->mpi == NULL)
        record_null(&record);
    else
        record_string(&record, introduction->mpi);
    add_eager_limits(&record, introduction->eager_limits, introduction->eager_limit_count);
    if (introduction->operation == NULL) {
        record_pair_string(&record, "role", "server");
        record_pair_unsigned(&record, "port", introduction->port);
    } else {
        record_pair_string(&record, "op", introduction->operation);
        record_pair_unsigned(&record, "seed", introduction->seed);
    }
    add_nodes(&record, introduction->nodes, introduction->node_count);
    record_pair_bool(&record, "yields", introduction->yields);
    record_pair_unsigned(&record, "pid", (uint64_t)getpid());
    record_key(&record, "clock");
    record_open(&record, '{');
    record_pair_string(&record, "source", WULF_CLOCK_NAME);
    record_pair_double(&record, "resolution_ns", introduction->clock.resolution_ns, 1);
    record_pair_double(&record, "cost_ns", introduction->clock.cost_ns, 1);
    record_close(&record, '}');
    return write_and_free(&record, STDOUT_FILENO);
}

int report_progress(const struct progress *progress) {
    struct record record = {0};
    record_begin(&record, "progress");
    record_pair_unsigned(&record, "sweep", progress->sweep);
    record_pair_unsigned(&record, "sweeps", progress->sweeps);
    record_pair_unsigned(&record, "visits_done", progress->visits_done);
    record_pair_unsigned(&record, "visits", progress->visits);
    record_pair_unsigned(&record, "moved_bytes", progress->moved_bytes);
    record_pair_unsigned(&record, "at_us", progress->at_us);
    return write_and_free(&record, STDOUT_FILENO);
}

int report_waiting(void) {
    struct record record = {0};
    record_begin(&record, "waiting");
    return write_and_free(&record, STDOUT_FILENO);
}

static void add_histogram(struct record *record, const struct histogram *histogram) {
    size_t cursor = 0;
    uint64_t value_ns = 0;
    uint64_t count = 0;
    record_key(record, "histogram");
    record_open(record, '[');
    while (histogram_next(histogram, &cursor, &value_ns, &count)) {
        record_open(record, '[');
        record_unsigned(record, value_ns);
        record_unsigned(record, count);
        record_close(record, ']');
    }
    record_close(record, ']');
}

static void add_values(struct record *record, const char *key, const double *values_ns, size_t count) {
    record_key(record, key);
    record_open(record, '[');
    for (size_t i = 0; i < count; i++)
        record_double(record, values_ns[i], 1);
    record_close(record, ']');
}

static void add_whole(struct record *record, const char *key, const uint64_t *values, size_t count) {
    record_key(record, key);
    record_open(record, '[');
    for (size_t i = 0; i < count; i++)
        record_unsigned(record, values[i]);
    record_close(record, ']');
}

/* A list for each rank, of values that have all ranks of one visit together. */
static void add_by_rank(struct record *record, const char *key, const double *values_ns, size_t ranks,
                        size_t count) {
    record_key(record, key);
    record_open(record, '[');
    for (size_t rank = 0; rank < ranks; rank++) {
        record_open(record, '[');
        for (size_t i = 0; i < count; i++)
            record_double(record, values_ns[i * ranks + rank], 1);
        record_close(record, ']');
    }
    record_close(record, ']');
}

static void add_scope(struct record *record, struct scope scope) {
    if (scope.arm != NULL)
        record_pair_string(record, "arm", scope.arm);
    if (scope.ranks == NULL)
        return;
    record_key(record, "ranks");
    record_open(record, '[');
    for (size_t i = 0; i < 2; i++)
        record_unsigned(record, (uint64_t)scope.ranks[i]);
    record_close(record, ']');
}

void record_cell(struct record *record, const char *name, const struct operation *operation,
                 const struct cell *cell, struct scope scope) {
    record_begin(record, "cell");
    add_scope(record, scope);
    record_pair_string(record, "op", name);
    record_pair_unsigned(record, "size", cell->size);
    record_pair_string(record, "timing", cell->times_iterations ? "iteration" : "batch");
    record_pair_double(record, "divisor", operation->divisor, 0);
    record_pair_unsigned(record, "iterations", cell->iterations);
    record_pair_unsigned(record, "batch_iterations", cell->visit_iterations);
    record_pair_unsigned(record, "min_ns", histogram_min_ns(cell->histogram));
    record_pair_unsigned(record, "max_ns", histogram_max_ns(cell->histogram));
    add_histogram(record, cell->histogram);
    add_values(record, "batch_medians_ns", cell->medians_ns, cell->median_count);
    add_whole(record, "batch_at_us", cell->at_us, cell->median_count);
    add_values(record, "warmup_medians_ns", cell->warmup_ns, cell->warmup_count);
    record_pair_bool(record, "warmup_settled", cell->warmup_settled);
    record_pair_unsigned(record, "lost", cell->lost);
    record_pair_unsigned(record, "warmup_lost", cell->warmup_lost);
    record_pair_unsigned(record, "corrupt", cell->corrupt);
    if (cell->exits_ns != NULL) {
        record_pair_unsigned(record, "late", cell->late);
        add_whole(record, "clock_errors_ns", cell->clock_errors_ns, cell->median_count);
        add_whole(record, "start_tolerances_ns", cell->tolerances_ns, cell->median_count);
        add_by_rank(record, "exit_medians_ns", cell->exits_ns, cell->ranks, cell->median_count);
    }
    record_close(record, '}');
}

void record_references(struct record *record, const struct references *references, struct scope scope) {
    record_begin(record, "reference");
    add_scope(record, scope);
    add_by_rank(record, "medians_ns", references->medians_ns, references->ranks, references->count);
    add_whole(record, "at_us", references->at_us, references->count);
    record_close(record, '}');
}

int report_line(const char *text, size_t length) {
    struct record record = {.text = malloc(length + 1), .length = length, .capacity = length + 1};
    record.failed = record.text == NULL;
    if (!record.failed)
        memcpy(record.text, text, length);
    const int status = record_write(&record, STDOUT_FILENO);
    record_free(&record);
    return status;
}

int report_end(double elapsed_s) {
    struct record record = {0};
    record_begin(&record, "end");
    record_pair_double(&record, "elapsed_s", elapsed_s, 3);
    return write_and_free(&record, STDOUT_FILENO);
}

static void make_failure(struct record *record, const struct failure *failure) {
    record_begin(record, "error");
    record_pair_string(record, "code", failure->code);
    record_pair_string(record, "peer", failure->peer);
    record_pair_string(record, "message", failure->message);
}

int report_failure(const struct failure *failure, int fd) {
    struct record record = {0};
    make_failure(&record, failure);
    return write_and_free(&record, fd);
}

size_t report_failure_text(const struct failure *failure, char *text, size_t capacity) {
    struct record record = {0};
    make_failure(&record, failure);
    record_close(&record, '}');
    size_t length = 0;
    if (!record.failed && record.length + 1 <= capacity) {
        memcpy(text, record.text, record.length);
        text[record.length] = '\n';
        length = record.length + 1;
    }
    record_free(&record);
    return length;
}
