/* Fixed work wherever the kernel puts it. */
#include "probe/local/fixed_work.h"

enum { WORK_MOST_US = 100000 };

static int initiate(struct visit *visit, struct failure *failure) {
    (void)failure;
    fixed_work_visit(visit, visit->parameter);
    return 0;
}

static const struct operation OPERATION = {
    .name = "noise",
    .link = LINK_NONE,
    .quantity = "time of fixed work",
    .divisor = 1,
    .timing = TIMING_ITERATION,
    .visit_scale = FIXED_WORK_VISIT_SCALE,
    .parameter = {.name = "µs of work", .usual = FIXED_WORK_US, .low = 1, .high = WORK_MOST_US},
    .summary = "Fixed work on one processor: what else runs there shows as times above the shortest",
    .initiate = initiate,
};
WULF_OPERATION(OPERATION)
