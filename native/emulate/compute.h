/* Computing, as a program does between its messages: the CPU is busy and no call of MPI is made. */
#ifndef WULF_EMULATE_COMPUTE_H
#define WULF_EMULATE_COMPUTE_H

#include <stdint.h>

enum compute_way {
    COMPUTE_WORK,  /* so many steps of arithmetic as take that long undisturbed: who is disturbed takes longer
                    */
    COMPUTE_CLOCK, /* until the clock says so: what is lost to others within it is not made up for */
    COMPUTE_NONE,  /* no time: the network alone */
};

struct compute {
    enum compute_way way;
    double step_ns; /* of COMPUTE_WORK */
};

/* The way of a name: work, clock, none. 0, or -1 where there is none of that name. */
int compute_named(struct compute *compute, const char *name);

/* Find how long a step takes: some milliseconds. Of many short tries the quickest counts, so that ranks which
 * share a CPU may do it at the same time. */
void compute_calibrate(struct compute *compute);

/* Compute for so long; returns how long it took [ns]. */
uint64_t compute_for(const struct compute *compute, uint64_t lasts_ns);

#endif
