/* How much of its time each rank computes, by program: the rest it sends and waits. */
#ifndef WULF_EMULATE_SHARES_H
#define WULF_EMULATE_SHARES_H

#include "emulate/emulation.h"

/* Of this rank: a time for each program and pass. */
struct shares {
    size_t programs, passes, made;
    uint64_t *time_ns, *compute_ns, *asked_ns;
};

int shares_new(struct shares *shares, size_t programs, size_t passes, struct failure *failure);
void shares_free(struct shares *shares);
/* Take in the notes of a pass. */
void shares_add(struct shares *shares, const struct emulation *emulation);
/* Medians over passes of all ranks, a line for each program from rank 0; all ranks call it. */
int shares_print(const struct shares *shares, const struct emulation *emulation, struct failure *failure);

#endif
