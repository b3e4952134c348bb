/* A pass: all iterations of all programs once, begun by all ranks at the same time. */
#ifndef WULF_EMULATE_PASS_H
#define WULF_EMULATE_PASS_H

#include "emulate/emulation.h"

/* What rank 0 knows of a pass. Times are since the common begin, on its clock [ns]. */
struct pass {
    int64_t **ended_ns;    /* program → iteration → when its last rank was done with it */
    double *exits_ns;      /* rank → when it was done with all */
    double late_ns;        /* how late the last rank began */
    double clock_error_ns; /* how far two comparisons of the ranks' clocks differed */
};

/* Room for it: `iterations` of each program, on rank 0; from number 1 on. */
int pass_new(struct pass *pass, const uint64_t *iterations, size_t programs, int ranks,
             struct failure *failure);
void pass_free(struct pass *pass, size_t programs);

/* Make one; all ranks call it. `iterations` is that of all ranks. */
int pass_make(struct pass *pass, struct emulation *emulation, const uint64_t *iterations, size_t programs);

#endif
