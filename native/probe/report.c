#include "probe/report.h"

#include <unistd.h>

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
    record_pair_bool(record, "files", operation->files);
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

int report_progress(const struct progress *progress) {
    struct record record = {0};
    record_begin(&record, "progress");
    record_pair_unsigned(&record, "sweep", progress->sweep);
    record_pair_unsigned(&record, "sweeps", progress->sweeps);
    record_pair_unsigned(&record, "visits_done", progress->visits_done);
    record_pair_unsigned(&record, "visits", progress->visits);
    record_pair_unsigned(&record, "moved_bytes", progress->moved_bytes);
    record_pair_unsigned(&record, "at_us", progress->at_us);
    return line_write(&record, STDOUT_FILENO);
}

int report_waiting(void) {
    struct record record = {0};
    record_begin(&record, "waiting");
    return line_write(&record, STDOUT_FILENO);
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
    record_histogram(record, "histogram", cell->histogram);
    record_doubles(record, "batch_medians_ns", cell->medians_ns, cell->median_count, 1);
    record_wholes(record, "batch_at_us", cell->at_us, cell->median_count);
    record_doubles(record, "warmup_medians_ns", cell->warmup_ns, cell->warmup_count, 1);
    record_pair_bool(record, "warmup_settled", cell->warmup_settled);
    record_pair_unsigned(record, "lost", cell->lost);
    record_pair_unsigned(record, "warmup_lost", cell->warmup_lost);
    record_pair_unsigned(record, "corrupt", cell->corrupt);
    if (cell->exits_ns != NULL) {
        record_pair_unsigned(record, "late", cell->late);
        record_wholes(record, "clock_errors_ns", cell->clock_errors_ns, cell->median_count);
        record_wholes(record, "start_tolerances_ns", cell->tolerances_ns, cell->median_count);
        add_by_rank(record, "exit_medians_ns", cell->exits_ns, cell->ranks, cell->median_count);
    }
    if (cell->in_memory != NULL)
        record_doubles(record, "in_memory", cell->in_memory, cell->median_count, 4);
    if (cell->sent_per_s != NULL)
        record_doubles(record, "sent_per_s", cell->sent_per_s, cell->median_count, 1);
    record_close(record, '}');
}

void record_references(struct record *record, const struct references *references, struct scope scope) {
    record_begin(record, "reference");
    add_scope(record, scope);
    add_by_rank(record, "medians_ns", references->medians_ns, references->ranks, references->count);
    record_wholes(record, "at_us", references->at_us, references->count);
    record_close(record, '}');
}

static void add_scheduled(struct record *record, const char *key, uint64_t value) {
    if (value == SCHEDULED_UNKNOWN)
        return;
    record_pair_unsigned(record, key, value);
}

void record_scheduling(struct record *record, const struct scheduling *scheduling, struct scope scope) {
    record_begin(record, "scheduled");
    add_scope(record, scope);
    record_key(record, "of");
    record_open(record, '[');
    for (size_t rank = 0; rank < scheduling->ranks; rank++) {
        const struct scheduled *of = &scheduling->of[rank];
        record_open(record, '{');
        record_pair_unsigned(record, "lasted_ns", of->at_ns);
        add_scheduled(record, "ran_ns", of->ran_ns);
        add_scheduled(record, "waited_ns", of->waited_ns);
        add_scheduled(record, "displaced", of->displaced);
        record_close(record, '}');
    }
    record_close(record, ']');
    record_close(record, '}');
}
