/* The experiment with operations of known times, and the responder with commands that cannot be. */
#include <stdlib.h>

#include "probe/sweep.h"
#include "tests/expect.h"

enum { STEP_NS = 1000 };
static uint64_t visits, longest;
static bool alter;

/* Iteration i of a visit at size s takes s + i % 3 us; every visit loses one. */
static int initiate(struct visit *visit, struct failure *failure) {
    (void)failure;
    visits++;
    longest = visit->iterations > longest ? visit->iterations : longest;
    for (uint64_t i = 0; i < visit->iterations; i++) {
        const uint64_t time_ns = (visit->size + i % 3) * STEP_NS;
        if (visit->times_ns != NULL)
            visit->times_ns[i] = time_ns;
        visit->total_ns += time_ns;
    }
    visit->timed = visit->iterations;
    visit->lost = 1;
    if (alter)
        visit->buffer[visit->size - 1] ^= 1;
    return 0;
}

static const struct operation KNOWN = {
    .name = "known", .divisor = 1, .echoes = true, .min_size = 1, .max_size = 4096, .initiate = initiate};

static void ignore(const struct progress *progress, void *context) {
    (void)progress;
    (void)context;
}

static struct cell *run(const struct plan *plan) {
    struct failure failure = {0};
    struct cell *cells = cells_new(plan, 2);
    EXPECT(cells != NULL);
    struct references references;
    struct scheduled scheduled;
    struct scheduling scheduling = {.ranks = 1, .of = &scheduled};
    EXPECT(references_new(&references, plan, NULL) == 0);
    EXPECT(sweep_run(plan, NULL, cells, &references, &scheduling, ignore, NULL, &failure) == 0);
    EXPECT_TEXT(failure.message, "");
    EXPECT(references.count == 0);
    EXPECT(scheduled.at_ns > 0);
    references_free(&references);
    return cells;
}

static void records_every_value(void) {
    const size_t sizes[] = {10, 1000};
    const struct plan plan = {.operation = &KNOWN,
                              .sizes = sizes,
                              .count = 2,
                              .sweeps = 4,
                              .visit_us = 2000,
                              .seed = 1,
                              .clock = {.resolution_ns = 1, .cost_ns = 25}};
    struct cell *cells = run(&plan);
    for (size_t i = 0; i < 2; i++) {
        EXPECT(cells[i].size == sizes[i] && cells[i].times_iterations && cells[i].warmup_settled);
        EXPECT(cells[i].iterations == 4 * cells[i].visit_iterations);
        EXPECT(histogram_count(cells[i].histogram) == cells[i].iterations);
        EXPECT(cells[i].median_count == 4 && cells[i].lost == 4 && cells[i].corrupt == 0);
        EXPECT(histogram_min_ns(cells[i].histogram) == sizes[i] * STEP_NS);
    }
    EXPECT(cells[0].visit_iterations == 182); /* 2 ms / 11 us, and even */
    EXPECT(cells[0].medians_ns[0] == 11 * STEP_NS);
    EXPECT(longest == 182);
    cells_free(cells, 2);
}

static void two_settings_have_their_own_cells(void) {
    const size_t sizes[] = {10, 1000};
    const struct plan plan = {.operation = &KNOWN,
                              .sizes = sizes,
                              .count = 2,
                              .sweeps = 12,
                              .visit_us = 2000,
                              .reference_us = 100,
                              .seed = 1,
                              .arms = "abb",
                              .dwell_sweeps = 4,
                              .settle_sweeps = 1,
                              .clock = {.resolution_ns = 1, .cost_ns = 25}};
    struct failure failure = {0};
    struct references references[2];
    struct scheduled scheduled;
    struct scheduling scheduling = {.ranks = 1, .of = &scheduled};
    struct cell *cells = cells_new(&plan, 2);
    for (size_t arm = 0; arm < 2; arm++)
        EXPECT(references_new(&references[arm], &plan, NULL) == 0);
    EXPECT(sweep_run(&plan, NULL, cells, references, &scheduling, ignore, NULL, &failure) == 0);
    for (size_t i = 0; i < 4; i++) {
        EXPECT(cells[i].size == sizes[i % 2]);
        EXPECT(cells[i].median_count == (i < 2 ? 3 : 6)); /* what settles is left out */
        EXPECT(cells[i].visit_iterations > 0 && cells[i].warmup_settled);
    }
    EXPECT(references[0].count == 8 && references[1].count == 16);
    for (size_t arm = 0; arm < 2; arm++)
        references_free(&references[arm]);
    cells_free(cells, 4);
}

static void times_visits_where_the_clock_is_dear(void) {
    const size_t size = 10;
    const struct plan plan = {.operation = &KNOWN,
                              .sizes = &size,
                              .count = 1,
                              .sweeps = 3,
                              .visit_us = 2000,
                              .seed = 1,
                              .clock = {.resolution_ns = 1, .cost_ns = 5000}};
    struct cell *cells = run(&plan);
    EXPECT(!cells->times_iterations);
    EXPECT(histogram_count(cells->histogram) == 3 && cells->median_count == 3);
    cells_free(cells, 1);
}

static void sees_altered_payload(void) {
    const size_t size = 100;
    const struct plan plan = {.operation = &KNOWN,
                              .sizes = &size,
                              .count = 1,
                              .sweeps = 3,
                              .visit_us = 2000,
                              .seed = 1,
                              .clock = {.resolution_ns = 1, .cost_ns = 25}};
    alter = true;
    struct cell *cells = run(&plan);
    alter = false;
    EXPECT(cells->corrupt == 3);
    cells_free(cells, 1);
}

/* How many visits of the reference there are in three sweeps over so many sizes, alone. */
static size_t references_beside(size_t count) {
    size_t sizes[40];
    for (size_t i = 0; i < count; i++)
        sizes[i] = i + 1;
    const struct plan plan = {.operation = &KNOWN,
                              .sizes = sizes,
                              .count = count,
                              .sweeps = 3,
                              .visit_us = 100,
                              .reference_us = 50,
                              .seed = 1,
                              .clock = {.resolution_ns = 1, .cost_ns = 25}};
    struct failure failure = {0};
    struct cell *cells = cells_new(&plan, 2);
    struct references references;
    struct scheduled scheduled;
    struct scheduling scheduling = {.ranks = 1, .of = &scheduled};
    EXPECT(references_new(&references, &plan, NULL) == 0);
    EXPECT(sweep_run(&plan, NULL, cells, &references, &scheduling, ignore, NULL, &failure) == 0);
    EXPECT(references.ranks == 1);
    for (size_t i = 0; i < references.count; i++) {
        EXPECT(references.medians_ns[i] > 0);
        EXPECT(i == 0 || references.at_us[i] >= references.at_us[i - 1] + 50);
    }
    EXPECT(cells[0].at_us[0] >= references.at_us[0] || count > REFERENCES_PER_SWEEP);
    EXPECT(cells[0].at_us[2] > cells[0].at_us[1] && cells[0].at_us[1] > cells[0].at_us[0]);
    const size_t made = references.count;
    references_free(&references);
    cells_free(cells, count);
    return made;
}

static void references_are_among_the_visits(void) {
    EXPECT(references_beside(1) == 3);
    EXPECT(references_beside(2) == 6);
    EXPECT(references_beside(40) == 3 * REFERENCES_PER_SWEEP);
}

/* A channel on which a script of commands arrives. */
struct script {
    const struct command *commands;
    size_t place, answers;
    uint64_t last; /* answer, or its first number, if it was a time */
};

static int hear(void *link, unsigned char *bytes, size_t length, struct failure *failure) {
    struct script *script = link;
    (void)length;
    (void)failure;
    command_encode(&script->commands[script->place++], bytes);
    return 0;
}

static int answer(void *link, const unsigned char *bytes, size_t length, struct failure *failure) {
    struct script *script = link;
    (void)failure;
    script->last = length >= 8 ? get_u64(bytes) : 0;
    script->answers++;
    return 0;
}

static int respond(struct visit *visit, struct failure *failure) {
    (void)failure;
    memset(visit->buffer, 1, visit->size); /* the sanitizer sees a buffer that is too small */
    memset(visit->spare, 1, visit->size + 1);
    return 0;
}

static void refuses(const struct command *command) {
    static const struct operation operation = {
        .name = "x", .min_size = 8, .max_size = 4096, .respond = respond};
    struct script script = {.commands = command};
    const struct channel channel = {
        .link = &script, .peer = "node02", .peers = 1, .send = answer, .receive = hear};
    const struct responder responder = {.operation = &operation, .ranks = 2, .max_size = 4096};
    struct failure failure = {0};
    EXPECT(sweep_respond(&responder, &channel, &failure) == -1);
    EXPECT_TEXT(failure.code, "size");
    EXPECT_TEXT(failure.peer, "node02");
}

static void responder_refuses_what_cannot_be(void) {
    refuses(&(struct command){.kind = COMMAND_VISIT, .size = 4097, .iterations = 1});
    refuses(&(struct command){.kind = COMMAND_VISIT, .size = 7, .iterations = 1});
    refuses(&(struct command){.kind = COMMAND_VISIT, .size = UINT64_MAX, .iterations = 1});
    refuses(&(struct command){.kind = COMMAND_VISIT, .size = 8, .iterations = 0});
    refuses(&(struct command){.kind = COMMAND_VISIT, .size = 8, .iterations = UINT64_MAX});
    refuses(&(struct command){.kind = COMMAND_REFERENCE, .size = 0});
    refuses(&(struct command){.kind = COMMAND_REFERENCE, .size = UINT64_MAX});
    refuses(&(struct command){.kind = 99, .size = 8, .iterations = 1});
    const struct command good[] = {{.kind = COMMAND_WAIT},
                                   {.kind = COMMAND_VISIT, .size = 4096, .iterations = 1},
                                   {.kind = COMMAND_END}};
    static const struct operation operation = {
        .name = "x", .min_size = 8, .max_size = 4096, .respond = respond};
    struct script script = {.commands = good};
    const struct channel channel = {.link = &script, .peer = "node02", .send = answer, .receive = hear};
    const struct responder responder = {.operation = &operation, .ranks = 2, .max_size = 4096};
    struct failure failure = {0};
    EXPECT(sweep_respond(&responder, &channel, &failure) == 0);
    EXPECT(script.place == 3 && script.answers == 1); /* nobody answers a wait */
}

static void responder_tells_its_reference(void) {
    const struct command commands[] = {{.kind = COMMAND_REFERENCE, .size = 100}, {.kind = COMMAND_END}};
    static const struct operation operation = {
        .name = "x", .min_size = 8, .max_size = 4096, .respond = respond};
    struct script script = {.commands = commands};
    const struct channel channel = {
        .link = &script, .peer = "node02", .peers = 1, .send = answer, .receive = hear};
    const struct responder responder = {.operation = &operation, .ranks = 2, .max_size = 4096};
    struct failure failure = {0};
    EXPECT(sweep_respond(&responder, &channel, &failure) == 0);
    EXPECT(script.answers == 1 && script.last > 1000); /* four system calls take longer than 1 ns */
}

static void responder_tells_how_it_was_scheduled(void) {
    const struct command commands[] = {{.kind = COMMAND_SCHEDULED}, {.kind = COMMAND_END}};
    static const struct operation operation = {
        .name = "x", .min_size = 8, .max_size = 4096, .respond = respond};
    struct script script = {.commands = commands};
    const struct channel channel = {
        .link = &script, .peer = "node02", .peers = 1, .send = answer, .receive = hear};
    const struct responder responder = {.operation = &operation, .ranks = 2, .max_size = 4096};
    struct failure failure = {0};
    EXPECT(sweep_respond(&responder, &channel, &failure) == 0);
    EXPECT(script.answers == 1 && script.last > 0); /* time has passed */
}

int main(void) {
    records_every_value();
    two_settings_have_their_own_cells();
    times_visits_where_the_clock_is_dear();
    sees_altered_payload();
    references_are_among_the_visits();
    responder_refuses_what_cannot_be();
    responder_tells_its_reference();
    responder_tells_how_it_was_scheduled();
    return EXPECT_STATUS();
}
