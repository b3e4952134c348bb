/* What rank 0 keeps of all passes, and the lines that say it. */
#ifndef WULF_EMULATE_RESULTS_H
#define WULF_EMULATE_RESULTS_H

#include "core/histogram.h"
#include "emulate/pass.h"

/* Values of one operation: of the whole, of a program, or of a program's iterations. */
struct cell {
    const char *op; /* NULL: nobody asks for it */
    bool is_iterations;
    struct histogram *histogram;
    double *medians_ns; /* of each pass */
    double *warm_up_ns;
    uint64_t iterations;
};

struct results {
    size_t programs, passes, warm_ups;
    size_t made, warmed; /* so far */
    int ranks;
    struct cell whole;
    struct cell *times, *iterations; /* by program, from 1 on */
    uint64_t *at_us;                 /* when each pass ended */
    uint64_t *late_ns, *clock_errors_ns;
    double *exits_ns; /* pass → rank */
    uint64_t begun_ns;
    uint64_t wrong;
    uint64_t *sorted; /* room for an iteration each */
};

/* What each of the operations is called. */
struct names {
    const char *whole;
    const char *const *programs, *const *iterations; /* an empty one is not printed */
};

int results_new(struct results *results, const struct names *names, size_t programs,
                const uint64_t *iterations, size_t passes, size_t warm_ups, int ranks,
                struct failure *failure);
void results_free(struct results *results);

/* Take in a pass. 0, or -1 where it lasted longer than can be counted. */
int results_add(struct results *results, const struct pass *pass, const uint64_t *iterations, bool is_warm_up,
                struct failure *failure);
/* Print them: 0, or -1 with errno. */
int results_print(const struct results *results);

#endif
