/* The experiment of one launch: warm-up of every cell, then sweeps over all cells in random order. */
#ifndef WULF_SWEEP_H
#define WULF_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/calibrate.h"
#include "core/clock.h"
#include "core/failure.h"
#include "core/histogram.h"
#include "core/scheduled.h"
#include "probe/command.h"
#include "probe/operation.h"

/* Beside so many of a sweep's visits there is one of the reference, where there are so many. */
enum { REFERENCES_PER_SWEEP = 8 };

struct plan {
    const struct operation *operation;
    uint64_t parameter;  /* of the operation */
    const size_t *sizes; /* ascending */
    size_t count;
    uint64_t sweeps, visit_us, seed;
    uint64_t reference_us; /* length of a visit of the reference; 0: none is made */
    /* Which of two settings comes when, each for so many sweeps, and where this node's guard makes them
     * (`alternation.h`). NULL where there is one setting, or nothing has to be made. */
    const char *alternate, *arms;
    uint64_t dwell_sweeps;
    uint64_t settle_sweeps; /* so many first ones of each dwell are not recorded */
    struct clock_info clock;
    /* Called before every visit that is measured, where others measure at the same time; else NULL. 0, or -1
     * with `failure`. */
    int (*together)(void *company, struct failure *failure);
    void *company;
};

/* Settings that a launch compares. */
size_t plan_arms(const struct plan *plan);

/* All values of one size under one setting. */
struct cell {
    size_t size;
    bool times_iterations; /* else visits */
    uint64_t visit_iterations;
    uint64_t iterations; /* that have a time */
    struct histogram *histogram;
    double *medians_ns; /* of the visits, in time order; room for `sweeps` */
    uint64_t *at_us;    /* when each of them ended, since the sweeps began; room for `sweeps` */
    /* Of every rank for each of them, how well clocks agreed, and how late ranks may have been; NULL where
     * ranks do not say. */
    double *exits_ns;
    uint64_t *clock_errors_ns, *tolerances_ns;
    double *in_memory;  /* of each visit, as it says; NULL where no file is touched; room for `sweeps` */
    double *sent_per_s; /* of each visit; NULL where it does not say; room for `sweeps` */
    size_t median_count, ranks;
    double warmup_ns[WARMUP_MAX_VISITS];
    size_t warmup_count;
    bool warmup_settled;
    uint64_t lost, warmup_lost, late, corrupt;
};

/* The visits of the reference: on every rank, the measuring one first. */
struct references {
    size_t ranks, count, capacity;
    double *medians_ns; /* `ranks` of each visit */
    uint64_t *at_us;    /* when each of them ended, since the sweeps began */
};

/* How every rank was scheduled during the sweeps, the measuring one first. */
struct scheduling {
    size_t ranks;
    struct scheduled *of;
};

/* How far it is; sweep 0 is the warm-up. */
struct progress {
    uint64_t sweep, sweeps, visits_done, visits;
    uint64_t moved_bytes; /* messages of all visits so far, one an iteration; 0 where none are moved */
    uint64_t at_us;       /* since the sweeps began */
};
typedef void (*progress_function)(const struct progress *progress, void *context);

/* Empty cells for the sizes of a plan, those of the second setting after those of the first; NULL when there
 * is no memory. */
struct cell *cells_new(const struct plan *plan, size_t ranks);
void cells_free(struct cell *cells, size_t count);

/* No visit yet, room for those of a plan under one setting; 0, or -1 when there is no memory. */
int references_new(struct references *references, const struct plan *plan, const struct channel *channel);
void references_free(struct references *references);

/* Measure. `channel` reaches the responder; NULL when the operation has none. There are `references` for each
 * setting, and room for all ranks in `scheduling`. 0, or -1 with `failure`. */
int sweep_run(const struct plan *plan, const struct channel *channel, struct cell *cells,
              struct references *references, struct scheduling *scheduling, progress_function progress,
              void *context, struct failure *failure);

/* What a rank that does not measure needs to answer. */
struct responder {
    const struct operation *operation;
    uint64_t parameter;    /* of the operation */
    size_t ranks;          /* that take part, this one among them */
    size_t max_size;       /* of a message */
    const char *alternate; /* as in `plan` */
};

/* The other side: do what the initiator says until it says that it is over. Sizes above `max_size` are
 * refused; `alternate` is as in the plan. 0, or -1 with `failure`. */
int sweep_respond(const struct responder *responder, const struct channel *channel, struct failure *failure);

#endif
