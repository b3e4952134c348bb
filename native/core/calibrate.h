/* How long a visit is, how it is timed, and when the warm-up is over. Pure functions. */
#ifndef WULF_CALIBRATE_H
#define WULF_CALIBRATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WARMUP_MAX_VISITS = 8,
    VISIT_MIN_ITERATIONS = 2,
    LONGEST_FOR_FEWEST = 25,
    VISIT_MAX_ITERATIONS = 1 << 20 /* bounds the memory for single times, and what a server accepts */
};

struct calibration_input {
    double iteration_ns;  /* median of the last warm-up visit; 0 or less when unknown */
    double visit_ns;      /* length aimed at */
    double clock_cost_ns; /* of one reading */
    double resolution_ns;
    uint64_t fewest; /* iterations, as long as they last no more than LONGEST_FOR_FEWEST visits; 0: two */
};

/* Iterations of a visit: as many as last `visit_ns`, at least 100 clock ticks, at least two, or `fewest`.
 * Always even: with the untimed first exchange the exchanges of a visit are an odd number, so that a fault
 * that inverts the same bits of every message does not cancel out. */
uint64_t calibrate_iterations(const struct calibration_input *input);

/* Whether single iterations can be timed: a reading of the clock costs less than 5 % of one. */
bool calibrate_times_iterations(const struct calibration_input *input);

/* Iterations of the warm-up visit number `done` (from 0): lengths grow fourfold up to a whole visit; the
 * last two are whole, so that they can agree however fast the operation is. */
uint64_t warmup_iterations(size_t done, const struct calibration_input *input);

/* Whether the last two medians agree within 5 %. */
bool warmup_settled(const double *medians_ns, size_t count);

#endif
