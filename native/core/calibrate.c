#include "core/calibrate.h"

#include <math.h>

static const double MIN_TICKS = 100;
static const double MAX_CLOCK_SHARE = 0.05;
static const double SETTLED_WITHIN = 0.05;

uint64_t calibrate_iterations(const struct calibration_input *input) {
    if (!(input->iteration_ns > 0)) /* too short to be seen, or nothing was answered */
        return VISIT_MIN_ITERATIONS;
    const double wanted_ns = fmax(input->visit_ns, MIN_TICKS * input->resolution_ns);
    const double wanted = ceil(wanted_ns / input->iteration_ns);
    if (wanted >= VISIT_MAX_ITERATIONS)
        return VISIT_MAX_ITERATIONS;
    const double affordable =
        fmin((double)input->fewest, LONGEST_FOR_FEWEST * wanted_ns / input->iteration_ns);
    const uint64_t iterations = (uint64_t)fmax(fmax(wanted, affordable), VISIT_MIN_ITERATIONS);
    return iterations + iterations % 2;
}

bool calibrate_times_iterations(const struct calibration_input *input) {
    return input->clock_cost_ns < MAX_CLOCK_SHARE * input->iteration_ns;
}

uint64_t warmup_iterations(size_t done, const struct calibration_input *input) {
    if (done == 0)
        return 1;
    const uint64_t whole = calibrate_iterations(input);
    const uint64_t grown = UINT64_C(1) << (2 * done);
    const bool last = done + 2 >= WARMUP_MAX_VISITS;
    return last || whole < grown ? whole : grown;
}

bool warmup_settled(const double *medians_ns, size_t count) {
    if (count < 2)
        return false;
    const double last = medians_ns[count - 1];
    const double before = medians_ns[count - 2];
    return fabs(last - before) <= SETTLED_WITHIN * fmin(last, before);
}
