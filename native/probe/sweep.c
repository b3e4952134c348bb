#include "probe/sweep.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/payload.h"
#include "core/sort.h"
#include "core/watchdog.h"
#include "probe/alternation.h"
#include "probe/buffers.h"
#include "probe/order.h"
#include "probe/reference.h"

enum { ANSWER_BYTES = 8, SCHEDULED_WORDS = 4, SCHEDULED_BYTES = SCHEDULED_WORDS * 8 };
/* Of ranks that begin together, so many times a visit: where they share CPUs, few differ by factors. */
enum { FEWEST_TOGETHER = 10 };
/* A median of the reference is sent as a whole number of these. */
static const double ANSWERS_PER_NS = 1000;

/* Room for a message of `size`, or for one of every rank. */
static size_t room_bytes(const struct operation *operation, size_t ranks, size_t size) {
    return operation->room == ROOM_EVERY_RANK ? size * ranks : size;
}

/* What the functions below share during one run. */
struct run {
    const struct plan *plan;
    const struct channel *channel;
    struct buffers buffers;
    uint64_t *times_ns;
    size_t *order;
    double *exits_ns;       /* of every rank in one visit */
    unsigned char *answers; /* of all peers, at most SCHEDULED_BYTES of each */
    struct reference *reference;
    struct references *references; /* of each setting */
    struct scheduling *scheduling;
    struct scheduled begin;
    size_t arm;   /* the setting: 0, or 1 for the second */
    bool settled; /* whether times count */
    uint64_t visit_number, begin_ns, moved_bytes;
    progress_function progress;
    void *context;
    struct failure *failure;
};

size_t plan_arms(const struct plan *plan) { return plan->arms == NULL ? 1 : 2; }

struct cell *cells_new(const struct plan *plan, size_t ranks) {
    const size_t count = plan->count * plan_arms(plan);
    struct cell *cells = calloc(count, sizeof *cells);
    bool complete = cells != NULL;
    for (size_t i = 0; complete && i < count; i++) {
        cells[i].size = plan->sizes[i % plan->count];
        cells[i].histogram = histogram_new();
        cells[i].medians_ns = calloc(plan->sweeps, sizeof *cells[i].medians_ns);
        cells[i].at_us = calloc(plan->sweeps, sizeof *cells[i].at_us);
        complete = cells[i].histogram != NULL && cells[i].medians_ns != NULL && cells[i].at_us != NULL;
        if (plan->operation->files) {
            cells[i].in_memory = calloc(plan->sweeps, sizeof *cells[i].in_memory);
            complete = complete && cells[i].in_memory != NULL;
        }
        if (plan->operation->tells_sent) {
            cells[i].sent_per_s = calloc(plan->sweeps, sizeof *cells[i].sent_per_s);
            complete = complete && cells[i].sent_per_s != NULL;
        }
        if (!plan->operation->tells_exits)
            continue;
        cells[i].ranks = ranks;
        cells[i].exits_ns = calloc(plan->sweeps * ranks, sizeof *cells[i].exits_ns);
        cells[i].clock_errors_ns = calloc(plan->sweeps, sizeof *cells[i].clock_errors_ns);
        cells[i].tolerances_ns = calloc(plan->sweeps, sizeof *cells[i].tolerances_ns);
        complete = complete && cells[i].exits_ns != NULL && cells[i].clock_errors_ns != NULL &&
                   cells[i].tolerances_ns != NULL;
    }
    if (complete)
        return cells;
    cells_free(cells, count);
    return NULL;
}

void cells_free(struct cell *cells, size_t count) {
    if (cells == NULL)
        return;
    for (size_t i = 0; i < count; i++) {
        histogram_free(cells[i].histogram);
        free(cells[i].medians_ns);
        free(cells[i].at_us);
        free(cells[i].exits_ns);
        free(cells[i].clock_errors_ns);
        free(cells[i].tolerances_ns);
        free(cells[i].in_memory);
        free(cells[i].sent_per_s);
    }
    free(cells);
}

/* Visits of the reference within one sweep: one beside every visit, of many sizes not beside all of them. */
static size_t references_each_sweep(const struct plan *plan) {
    if (plan->reference_us == 0)
        return 0;
    return plan->count < REFERENCES_PER_SWEEP ? plan->count : REFERENCES_PER_SWEEP;
}

int references_new(struct references *references, const struct plan *plan, const struct channel *channel) {
    *references = (struct references){.ranks = 1 + (channel == NULL ? 0 : channel->peers),
                                      .capacity = references_each_sweep(plan) * plan->sweeps};
    if (references->capacity == 0)
        return 0;
    references->medians_ns = calloc(references->capacity * references->ranks, sizeof(double));
    references->at_us = calloc(references->capacity, sizeof(uint64_t));
    return references->medians_ns != NULL && references->at_us != NULL ? 0 : -1;
}

void references_free(struct references *references) {
    free(references->medians_ns);
    free(references->at_us);
}

static struct calibration_input calibration(const struct run *run, double iteration_ns) {
    const struct plan *plan = run->plan;
    const unsigned scale = plan->operation->visit_scale == 0 ? 1 : plan->operation->visit_scale;
    return (struct calibration_input){
        .iteration_ns = iteration_ns,
        .visit_ns = (double)plan->visit_us * 1000 * scale,
        .clock_cost_ns = plan->clock.cost_ns,
        .resolution_ns = plan->clock.resolution_ns,
        .fewest = plan->operation->tells_exits ? FEWEST_TOGETHER : 0,
    };
}

static bool times_iterations(const struct run *run, double iteration_ns) {
    switch (run->plan->operation->timing) {
    case TIMING_ITERATION:
        return true;
    case TIMING_BATCH:
        return false;
    case TIMING_EITHER:
        break;
    }
    const struct calibration_input input = calibration(run, iteration_ns);
    return calibrate_times_iterations(&input);
}

/* Tell the responder what comes, and wait until it is ready. */
static int announce(const struct run *run, const struct visit *visit) {
    const struct channel *channel = run->channel;
    if (channel == NULL || run->plan->operation->respond == NULL)
        return 0;
    unsigned char bytes[COMMAND_BYTES];
    const struct command command = {.kind = COMMAND_VISIT,
                                    .size = visit->size,
                                    .iterations = visit->iterations,
                                    .number = visit->number,
                                    .seed = visit->seed};
    command_encode(&command, bytes);
    if (channel->send(channel->link, bytes, sizeof bytes, run->failure) != 0)
        return -1;
    return channel->receive(channel->link, run->answers, 1, run->failure);
}

/* One visit from its announcement to the check of its payload. */
static int make_visit(struct run *run, struct visit *visit, size_t size, uint64_t iterations, bool single) {
    const struct operation *operation = run->plan->operation;
    *visit = (struct visit){
        .link = run->channel == NULL ? NULL : run->channel->link,
        .buffer = run->buffers.first,
        .spare = run->buffers.second,
        .size = size,
        .iterations = iterations,
        .number = run->visit_number++,
        .seed = run->plan->seed,
        .parameter = run->plan->parameter,
        .times_ns = single ? run->times_ns : NULL,
        .exits_ns = run->exits_ns,
    };
    payload_fill(visit->buffer, operation->header_bytes, size, visit->seed, visit->number);
    if (announce(run, visit) != 0 || operation->initiate(visit, run->failure) != 0)
        return -1;
    if (operation->moves_bytes)
        run->moved_bytes += iterations * size;
    watchdog_beat();
    if (operation->echoes)
        visit->corrupt =
            !payload_matches(visit->buffer, operation->header_bytes, size, visit->seed, visit->number);
    return 0;
}

/* Time of one iteration of a visit that has at least one; changes the order of the times. */
static double median_ns(const struct visit *visit) {
    if (visit->times_ns != NULL)
        return median_u64(visit->times_ns, (size_t)visit->timed);
    return (double)visit->total_ns / (double)visit->timed;
}

static int warm_up(struct run *run, struct cell *cell) {
    const struct operation *operation = run->plan->operation;
    const size_t most = operation->warmup_visits == 0 ? WARMUP_MAX_VISITS : operation->warmup_visits;
    double iteration_ns = 0;
    for (size_t done = 0; done < most && !cell->warmup_settled; done++) {
        const struct calibration_input input = calibration(run, iteration_ns);
        const uint64_t iterations = warmup_iterations(done, &input);
        const bool whole = iterations == calibrate_iterations(&input);
        struct visit visit;
        const bool single =
            done == 0 ? operation->timing != TIMING_BATCH : times_iterations(run, iteration_ns);
        if (make_visit(run, &visit, cell->size, iterations, single) != 0)
            return -1;
        cell->warmup_lost += visit.lost;
        if (visit.timed == 0)
            continue;
        const double recorded_ns = median_ns(&visit);
        iteration_ns =
            visit.lasted_ns == 0 ? recorded_ns : (double)visit.lasted_ns / (double)visit.iterations;
        cell->warmup_ns[cell->warmup_count++] = recorded_ns;
        cell->warmup_settled = whole && warmup_settled(cell->warmup_ns, cell->warmup_count);
    }
    const struct calibration_input input = calibration(run, iteration_ns);
    cell->visit_iterations = calibrate_iterations(&input);
    cell->times_iterations = times_iterations(run, iteration_ns);
    if (plan_arms(run->plan) > 1) {
        struct cell *other = cell + run->plan->count;
        other->visit_iterations = cell->visit_iterations;
        other->times_iterations = cell->times_iterations;
        memcpy(other->warmup_ns, cell->warmup_ns, sizeof cell->warmup_ns);
        other->warmup_count = cell->warmup_count;
        other->warmup_settled = cell->warmup_settled;
    }
    return 0;
}

static uint64_t since_us(const struct run *run) { return (clock_now_ns() - run->begin_ns) / 1000; }

static bool record_times(struct cell *cell, const struct visit *visit) {
    if (visit->times_ns == NULL) {
        const double value = (double)visit->total_ns / (double)visit->timed;
        return histogram_add(cell->histogram, (uint64_t)llround(value));
    }
    for (uint64_t i = 0; i < visit->timed; i++)
        if (!histogram_add(cell->histogram, visit->times_ns[i]))
            return false;
    return true;
}

/* The reference on the other ranks, all at once; `medians_ns` has room for all of them. */
static int ask_for_references(const struct run *run, double *medians_ns) {
    const struct channel *channel = run->channel;
    if (channel == NULL)
        return 0;
    unsigned char bytes[COMMAND_BYTES];
    const struct command command = {.kind = COMMAND_REFERENCE, .size = run->plan->reference_us};
    command_encode(&command, bytes);
    if (channel->send(channel->link, bytes, sizeof bytes, run->failure) != 0)
        return -1;
    if (channel->receive(channel->link, run->answers, ANSWER_BYTES, run->failure) != 0)
        return -1;
    for (size_t i = 0; i < channel->peers; i++)
        medians_ns[i] = (double)get_u64(run->answers + i * ANSWER_BYTES) / ANSWERS_PER_NS;
    return 0;
}

/* One visit of the reference on every rank: the others have their turn after this one, as they may share its
 * CPU. */
static int refer(struct run *run) {
    struct references *references = &run->references[run->arm];
    double *medians_ns = references->medians_ns + references->count * references->ranks;
    if (reference_visit(run->reference, medians_ns, run->failure) != 0)
        return -1;
    if (ask_for_references(run, medians_ns + 1) != 0)
        return -1;
    references->at_us[references->count++] = since_us(run);
    return 0;
}

static int measure(struct run *run, struct cell *cell) {
    const struct plan *plan = run->plan;
    struct visit visit;
    if (plan->together != NULL && plan->together(plan->company, run->failure) != 0)
        return -1;
    if (make_visit(run, &visit, cell->size, cell->visit_iterations, cell->times_iterations) != 0)
        return -1;
    cell->lost += visit.lost;
    cell->late += visit.late;
    cell->corrupt += visit.corrupt;
    if (visit.timed == 0 || !run->settled)
        return 0;
    cell->iterations += visit.timed;
    if (!record_times(cell, &visit))
        return failure_set(run->failure, "system", "", "an iteration at %zu B took longer than an hour",
                           cell->size);
    cell->at_us[cell->median_count] = since_us(run);
    if (cell->exits_ns != NULL) {
        memcpy(cell->exits_ns + cell->median_count * cell->ranks, visit.exits_ns,
               cell->ranks * sizeof *visit.exits_ns);
        cell->clock_errors_ns[cell->median_count] = visit.clock_error_ns;
        cell->tolerances_ns[cell->median_count] = visit.tolerance_ns;
    }
    if (cell->in_memory != NULL)
        cell->in_memory[cell->median_count] = visit.in_memory;
    if (cell->sent_per_s != NULL)
        cell->sent_per_s[cell->median_count] = visit.sent_per_s;
    cell->medians_ns[cell->median_count++] = median_ns(&visit);
    return 0;
}

/* Have all sides make the setting of the sweep's dwell, where one begins. */
static int alternate(struct run *run, uint64_t number) {
    const struct plan *plan = run->plan;
    run->settled = true;
    if (plan->arms == NULL || number == 0)
        return 0;
    run->settled = (number - 1) % plan->dwell_sweeps >= plan->settle_sweeps;
    if ((number - 1) % plan->dwell_sweeps != 0)
        return 0;
    const char arm = plan->arms[(number - 1) / plan->dwell_sweeps];
    run->arm = (size_t)(arm - 'a');
    if (plan->alternate == NULL)
        return 0;
    if (run->channel != NULL) {
        unsigned char bytes[COMMAND_BYTES];
        const struct command command = {.kind = COMMAND_ALTERNATE, .number = (uint64_t)(unsigned char)arm};
        command_encode(&command, bytes);
        if (run->channel->send(run->channel->link, bytes, sizeof bytes, run->failure) != 0)
            return -1;
    }
    if (alternation_ask(plan->alternate, arm, run->failure) != 0)
        return -1;
    return run->channel == NULL ? 0
                                : run->channel->receive(run->channel->link, run->answers, 1, run->failure);
}

/* One visit of every cell, in the sweep's own order; sweep 0 is the warm-up. */
static int sweep(struct run *run, struct cell *cells, uint64_t number) {
    const struct plan *plan = run->plan;
    const size_t references = number == 0 ? 0 : references_each_sweep(plan);
    order_shuffle(run->order, plan->count, plan->seed, number);
    for (size_t i = 0; i < plan->count; i++) {
        struct cell *cell = &cells[run->arm * plan->count + run->order[i]];
        /* Evenly among the visits, whose order is random. */
        if ((i + 1) * references / plan->count > i * references / plan->count && refer(run) != 0)
            return -1;
        if ((number == 0 ? warm_up(run, cell) : measure(run, cell)) != 0)
            return -1;
        const struct progress progress = {
            .sweep = number,
            .sweeps = plan->sweeps,
            .visits_done = number == 0 ? 0 : (number - 1) * plan->count + i + 1,
            .visits = plan->sweeps * plan->count,
            .moved_bytes = run->moved_bytes,
            .at_us = since_us(run),
        };
        run->progress(&progress, run->context);
    }
    return 0;
}

/* How this rank was scheduled, and what the others say of themselves. */
static int ask_for_scheduling(const struct run *run) {
    const struct channel *channel = run->channel;
    unsigned char bytes[COMMAND_BYTES];
    const struct command command = {.kind = COMMAND_SCHEDULED};
    struct scheduled *of = run->scheduling->of;
    *of++ = scheduled_since(&run->begin);
    if (channel == NULL)
        return 0;
    command_encode(&command, bytes);
    if (channel->send(channel->link, bytes, sizeof bytes, run->failure) != 0 ||
        channel->receive(channel->link, run->answers, SCHEDULED_BYTES, run->failure) != 0)
        return -1;
    for (size_t i = 0; i < channel->peers; i++) {
        const unsigned char *answer = run->answers + i * SCHEDULED_BYTES;
        *of++ = (struct scheduled){get_u64(answer), get_u64(answer + 8), get_u64(answer + 16),
                                   get_u64(answer + 24)};
    }
    return 0;
}

static int answer_scheduling(const struct scheduled *begin, const struct channel *channel,
                             struct failure *failure) {
    const struct scheduled since = scheduled_since(begin);
    const uint64_t words[SCHEDULED_WORDS] = {since.at_ns, since.ran_ns, since.waited_ns, since.displaced};
    unsigned char answer[SCHEDULED_BYTES];
    for (size_t i = 0; i < SCHEDULED_WORDS; i++)
        put_u64(answer + i * 8, words[i]);
    return channel->send(channel->link, answer, sizeof answer, failure);
}

static int finish(const struct run *run, const struct cell *cells) {
    const struct plan *plan = run->plan;
    const char *peer = run->channel == NULL ? "nobody" : run->channel->peer;
    for (size_t i = 0; i < plan->count * plan_arms(plan); i++)
        if (cells[i].iterations == 0)
            return failure_set(run->failure, "size", peer,
                               "%s answered no message of %zu B: leave this size out", peer, cells[i].size);
    if (ask_for_scheduling(run) != 0)
        return -1;
    if (run->channel == NULL)
        return 0;
    unsigned char bytes[COMMAND_BYTES];
    const struct command end = {.kind = COMMAND_END};
    command_encode(&end, bytes);
    return run->channel->send(run->channel->link, bytes, sizeof bytes, run->failure);
}

static int run_sweeps(struct run *run, struct cell *cells) {
    for (uint64_t number = 0; number <= run->plan->sweeps; number++)
        if (alternate(run, number) != 0 || sweep(run, cells, number) != 0)
            return -1;
    return finish(run, cells);
}

int sweep_run(const struct plan *plan, const struct channel *channel, struct cell *cells,
              struct references *references, struct scheduling *scheduling, progress_function progress,
              void *context, struct failure *failure) {
    const size_t time_bytes = VISIT_MAX_ITERATIONS * sizeof(uint64_t);
    const size_t ranks = channel == NULL ? 1 : channel->peers + 1;
    struct run run = {
        .plan = plan,
        .channel = channel,
        .times_ns = malloc(time_bytes),
        .order = calloc(plan->count, sizeof(size_t)),
        .exits_ns = calloc(ranks, sizeof(double)),
        .answers = malloc((channel == NULL ? 1 : channel->peers) * SCHEDULED_BYTES),
        .references = references,
        .scheduling = scheduling,
        .begin = scheduled_now(),
        .begin_ns = clock_now_ns(),
        .progress = progress,
        .context = context,
        .failure = failure,
    };
    int status = -1;
    if (run.times_ns == NULL || run.order == NULL || run.exits_ns == NULL || run.answers == NULL ||
        buffers_new(&run.buffers, room_bytes(plan->operation, ranks, plan->sizes[plan->count - 1])) != 0)
        failure_set(failure, "system", "", "no memory for messages of %zu B", plan->sizes[plan->count - 1]);
    else if (plan->reference_us == 0 ||
             (run.reference = reference_open(plan->reference_us, failure)) != NULL) {
        memset(run.times_ns, 0, time_bytes); /* no page fault while the clock runs */
        status = run_sweeps(&run, cells);
    }
    reference_close(run.reference);
    buffers_free(&run.buffers);
    free(run.answers);
    free(run.exits_ns);
    free(run.order);
    free(run.times_ns);
    return status;
}

/* A visit from somebody else's numbers, when they are possible. */
static int accept_visit(const struct command *command, const struct responder *responder,
                        const struct channel *channel, struct visit *visit, struct failure *failure) {
    const struct operation *operation = responder->operation;
    if (command->kind != COMMAND_VISIT || operation->respond == NULL || command->size < operation->min_size ||
        command->size > responder->max_size || command->iterations < 1 ||
        command->iterations > VISIT_MAX_ITERATIONS)
        return failure_set(failure, "size", channel->peer, "%s asks for a visit that cannot be",
                           channel->peer);
    visit->link = channel->link;
    visit->size = (size_t)command->size;
    visit->iterations = command->iterations;
    visit->number = command->number;
    visit->seed = command->seed;
    visit->parameter = responder->parameter;
    return 0;
}

/* Make a visit of the reference and tell its median. */
static int answer_reference(struct reference **reference, const struct command *command,
                            const struct channel *channel, struct failure *failure) {
    unsigned char answer[ANSWER_BYTES];
    double median_ns = 0;
    if (command->size < 1 || command->size > REFERENCE_MAX_US)
        return failure_set(failure, "size", channel->peer, "%s asks for a reference that cannot be",
                           channel->peer);
    if (*reference == NULL && (*reference = reference_open(command->size, failure)) == NULL)
        return -1;
    if (reference_visit(*reference, &median_ns, failure) != 0)
        return -1;
    put_u64(answer, (uint64_t)llround(median_ns * ANSWERS_PER_NS));
    return channel->send(channel->link, answer, sizeof answer, failure);
}

/* Have this node's guard make a setting, and say that it is made. */
static int answer_alternation(const struct command *command, const char *place, const struct channel *channel,
                              struct failure *failure) {
    const unsigned char made = 1;
    const char arm = (char)command->number;
    if (place == NULL || command->number > CHAR_MAX || !alternation_is_arm(arm))
        return failure_set(failure, "setting", channel->peer, "%s asks for a setting that cannot be",
                           channel->peer);
    if (alternation_ask(place, arm, failure) != 0)
        return -1;
    return channel->send(channel->link, &made, 1, failure);
}

int sweep_respond(const struct responder *responder, const struct channel *channel, struct failure *failure) {
    const struct operation *operation = responder->operation;
    struct scheduled begin = {0}; /* with the first command: until then this side waits for the other one */
    struct reference *reference = NULL;
    struct buffers buffers;
    if (buffers_new(&buffers, room_bytes(operation, responder->ranks, responder->max_size)) != 0)
        return failure_set(failure, "system", "", "no memory for messages of %zu B", responder->max_size);
    int status = 0;
    while (status == 0) {
        unsigned char bytes[COMMAND_BYTES];
        struct command command;
        struct visit visit = {.buffer = buffers.first, .spare = buffers.second};
        const unsigned char ready = 1;
        status = channel->receive(channel->link, bytes, sizeof bytes, failure);
        if (status != 0)
            break;
        watchdog_beat();
        if (begin.at_ns == 0)
            begin = scheduled_now();
        command_decode(&command, bytes);
        if (command.kind == COMMAND_END)
            break;
        if (command.kind == COMMAND_WAIT)
            continue;
        if (command.kind == COMMAND_REFERENCE) {
            status = answer_reference(&reference, &command, channel, failure);
            continue;
        }
        if (command.kind == COMMAND_ALTERNATE) {
            status = answer_alternation(&command, responder->alternate, channel, failure);
            continue;
        }
        if (command.kind == COMMAND_SCHEDULED) {
            status = answer_scheduling(&begin, channel, failure);
            continue;
        }
        status = accept_visit(&command, responder, channel, &visit, failure);
        if (status == 0)
            status = channel->send(channel->link, &ready, 1, failure);
        if (status == 0)
            status = operation->respond(&visit, failure);
    }
    reference_close(reference);
    buffers_free(&buffers);
    return status;
}
