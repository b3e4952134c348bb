#include "emulate/results.h"

#include <stdlib.h>
#include <unistd.h>

#include "core/calibrate.h"
#include "core/clock.h"
#include "core/lines.h"
#include "core/sort.h"

static int cell_new(struct cell *cell, const char *op, bool is_iterations, const struct results *results) {
    *cell = (struct cell){.op = op == NULL || *op == '\0' ? NULL : op,
                          .is_iterations = is_iterations,
                          .histogram = histogram_new(),
                          .medians_ns = calloc(results->passes, sizeof *cell->medians_ns),
                          .warm_up_ns = calloc(results->warm_ups + 1, sizeof *cell->warm_up_ns)};
    return cell->histogram != NULL && cell->medians_ns != NULL && cell->warm_up_ns != NULL ? 0 : -1;
}

static void cell_free(struct cell *cell) {
    if (cell->histogram != NULL)
        histogram_free(cell->histogram);
    free(cell->medians_ns);
    free(cell->warm_up_ns);
}

int results_new(struct results *results, const struct names *names, size_t programs,
                const uint64_t *iterations, size_t passes, size_t warm_ups, int ranks,
                struct failure *failure) {
    uint64_t most = 1;
    for (size_t program = 1; program < programs; program++)
        most = iterations[program] > most ? iterations[program] : most;
    *results = (struct results){.programs = programs,
                                .passes = passes,
                                .warm_ups = warm_ups,
                                .ranks = ranks,
                                .times = calloc(programs, sizeof *results->times),
                                .iterations = calloc(programs, sizeof *results->iterations),
                                .at_us = calloc(passes, sizeof *results->at_us),
                                .late_ns = calloc(passes, sizeof *results->late_ns),
                                .clock_errors_ns = calloc(passes, sizeof *results->clock_errors_ns),
                                .exits_ns = calloc(passes * (size_t)ranks, sizeof *results->exits_ns),
                                .sorted = calloc(most, sizeof *results->sorted)};
    int lacks = cell_new(&results->whole, names->whole, false, results);
    const bool has_all = results->times != NULL && results->iterations != NULL && results->at_us != NULL &&
                         results->late_ns != NULL && results->clock_errors_ns != NULL &&
                         results->exits_ns != NULL && results->sorted != NULL;
    for (size_t program = 1; has_all && program < programs; program++) {
        lacks |= cell_new(&results->times[program], names->programs[program - 1], false, results);
        lacks |= cell_new(&results->iterations[program], names->iterations[program - 1], true, results);
    }
    return has_all && lacks == 0 ? 0 : failure_set(failure, "system", "", "no memory for results");
}

void results_free(struct results *results) {
    for (size_t program = 1; program < results->programs; program++) {
        cell_free(&results->times[program]);
        cell_free(&results->iterations[program]);
    }
    cell_free(&results->whole);
    free(results->times);
    free(results->iterations);
    free(results->at_us);
    free(results->late_ns);
    free(results->clock_errors_ns);
    free(results->exits_ns);
    free(results->sorted);
}

/* One value of a pass: of an operation that has one in each. */
static bool add_time(struct results *results, struct cell *cell, int64_t time_ns, bool is_warm_up) {
    const uint64_t time = time_ns > 0 ? (uint64_t)time_ns : 0;
    if (is_warm_up) {
        cell->warm_up_ns[results->warmed] = (double)time;
        return true;
    }
    cell->medians_ns[results->made] = (double)time;
    cell->iterations = 1;
    return histogram_add(cell->histogram, time);
}

/* An iteration lasts from the end of the last one, wherever that came last, to its own. */
static bool add_iterations(struct results *results, struct cell *cell, const int64_t *ended_ns,
                           uint64_t count, bool is_warm_up) {
    int64_t before_ns = 0;
    bool fits = true;
    for (uint64_t i = 0; i < count; i++) {
        const int64_t time_ns = ended_ns[i] - before_ns;
        results->sorted[i] = time_ns > 0 ? (uint64_t)time_ns : 0;
        before_ns = ended_ns[i];
        if (!is_warm_up)
            fits = histogram_add(cell->histogram, results->sorted[i]) && fits;
    }
    const double median_ns = median_u64(results->sorted, count);
    if (is_warm_up)
        cell->warm_up_ns[results->warmed] = median_ns;
    else
        cell->medians_ns[results->made] = median_ns;
    cell->iterations = count;
    return fits;
}

int results_add(struct results *results, const struct pass *pass, const uint64_t *iterations, bool is_warm_up,
                struct failure *failure) {
    double whole_ns = 0;
    bool fits = true;
    for (int rank = 0; rank < results->ranks; rank++)
        whole_ns = pass->exits_ns[rank] > whole_ns ? pass->exits_ns[rank] : whole_ns;
    fits = add_time(results, &results->whole, (int64_t)whole_ns, is_warm_up);
    for (size_t program = 1; program < results->programs; program++) {
        const uint64_t count = iterations[program];
        const int64_t *ended_ns = pass->ended_ns[program];
        fits = add_time(results, &results->times[program], ended_ns[count - 1], is_warm_up) && fits;
        fits = add_iterations(results, &results->iterations[program], ended_ns, count, is_warm_up) && fits;
    }
    if (!fits)
        return failure_set(failure, "pattern", "",
                           "it lasts more than an hour: give it fewer iterations, they are repeated");
    if (is_warm_up) {
        results->warmed++;
        return 0;
    }
    for (int rank = 0; rank < results->ranks; rank++)
        results->exits_ns[results->made * (size_t)results->ranks + (size_t)rank] = pass->exits_ns[rank];
    results->at_us[results->made] = (clock_now_ns() - results->begun_ns) / 1000;
    results->late_ns[results->made] = (uint64_t)pass->late_ns;
    results->clock_errors_ns[results->made] = (uint64_t)pass->clock_error_ns;
    results->made++;
    return 0;
}

static void record_exits(struct record *record, const struct results *results) {
    record_key(record, "exit_medians_ns");
    record_open(record, '[');
    for (int rank = 0; rank < results->ranks; rank++) {
        record_open(record, '[');
        for (size_t pass = 0; pass < results->passes; pass++)
            record_double(record, results->exits_ns[pass * (size_t)results->ranks + (size_t)rank], 0);
        record_close(record, ']');
    }
    record_close(record, ']');
    record_wholes(record, "start_tolerances_ns", results->late_ns, results->passes);
    record_wholes(record, "clock_errors_ns", results->clock_errors_ns, results->passes);
    record_pair_unsigned(record, "late", 0);
}

static int print_cell(const struct results *results, const struct cell *cell) {
    struct record record = {0};
    if (cell->op == NULL)
        return 0;
    record_begin(&record, "cell");
    record_pair_string(&record, "op", cell->op);
    record_pair_unsigned(&record, "size", 0);
    record_pair_string(&record, "timing", cell->is_iterations ? "iteration" : "batch");
    record_pair_double(&record, "divisor", 1, 0);
    record_pair_unsigned(&record, "iterations", cell->iterations * results->passes);
    record_pair_unsigned(&record, "batch_iterations", cell->iterations);
    record_pair_unsigned(&record, "min_ns", histogram_min_ns(cell->histogram));
    record_pair_unsigned(&record, "max_ns", histogram_max_ns(cell->histogram));
    record_histogram(&record, "histogram", cell->histogram);
    record_doubles(&record, "batch_medians_ns", cell->medians_ns, results->passes, 1);
    record_wholes(&record, "batch_at_us", results->at_us, results->passes);
    record_doubles(&record, "warmup_medians_ns", cell->warm_up_ns, results->warmed, 1);
    /* One alone cannot be held against another one. */
    record_pair_bool(&record, "warmup_settled",
                     results->warmed < 2 || warmup_settled(cell->warm_up_ns, results->warmed));
    record_pair_unsigned(&record, "lost", 0);
    if (cell == &results->whole) {
        record_pair_unsigned(&record, "corrupt", results->wrong);
        record_exits(&record, results);
    }
    return line_write(&record, STDOUT_FILENO);
}

int results_print(const struct results *results) {
    int status = print_cell(results, &results->whole);
    for (size_t program = 1; program < results->programs && status == 0; program++) {
        status = print_cell(results, &results->times[program]);
        if (status == 0)
            status = print_cell(results, &results->iterations[program]);
    }
    return status;
}
