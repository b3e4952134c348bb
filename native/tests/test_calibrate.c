#include "core/calibrate.h"
#include "tests/expect.h"

static struct calibration_input input(double iteration_ns) {
    return (struct calibration_input){
        .iteration_ns = iteration_ns, .visit_ns = 2e6, .clock_cost_ns = 25, .resolution_ns = 1};
}

static void fills_the_visit(void) {
    struct calibration_input cell = input(10000);
    EXPECT(calibrate_iterations(&cell) == 200); /* 2 ms / 10 us */
    cell.iteration_ns = 10100;
    EXPECT(calibrate_iterations(&cell) == 200); /* 198.02, whole and even */
    cell.iteration_ns = 5e6;
    EXPECT(calibrate_iterations(&cell) == 2);
    cell.resolution_ns = 1e6; /* a visit must last 100 ticks */
    EXPECT(calibrate_iterations(&cell) == 20);
}

static void makes_more_where_few_are_not_enough(void) {
    struct calibration_input cell = input(4e6);
    cell.fewest = 10;
    EXPECT(calibrate_iterations(&cell) == 10); /* 40 ms */
    cell.iteration_ns = 10e6;
    EXPECT(calibrate_iterations(&cell) == 6); /* 25 visits of 2 ms are 5 of them, made even */
    cell.iteration_ns = 1e9;
    EXPECT(calibrate_iterations(&cell) == 2);
    cell.iteration_ns = 10000;
    EXPECT(calibrate_iterations(&cell) == 200);
}

static void is_bounded(void) {
    struct calibration_input cell = input(0);
    EXPECT(calibrate_iterations(&cell) == 2);
    cell.iteration_ns = -1;
    EXPECT(calibrate_iterations(&cell) == 2);
    cell.iteration_ns = 1e-9;
    EXPECT(calibrate_iterations(&cell) == VISIT_MAX_ITERATIONS);
    for (double ns = 1; ns < 1e9; ns *= 1.7) {
        cell.iteration_ns = ns;
        EXPECT(calibrate_iterations(&cell) % 2 == 0);
    }
}

static void times_iterations_where_the_clock_is_cheap(void) {
    struct calibration_input cell = input(501);
    EXPECT(calibrate_times_iterations(&cell)); /* 25 < 5 % of 501 */
    cell.iteration_ns = 500;
    EXPECT(!calibrate_times_iterations(&cell));
}

static void warms_up_to_a_whole_visit(void) {
    struct calibration_input cell = input(30);
    const uint64_t whole = calibrate_iterations(&cell);
    uint64_t before = 0;
    for (size_t done = 0; done < WARMUP_MAX_VISITS; done++) {
        const uint64_t iterations = warmup_iterations(done, &cell);
        EXPECT(iterations >= before && iterations <= whole);
        before = iterations;
    }
    EXPECT(warmup_iterations(0, &cell) == 1);
    EXPECT(warmup_iterations(2, &cell) == 16);
    EXPECT(warmup_iterations(WARMUP_MAX_VISITS - 2, &cell) == whole);
    EXPECT(warmup_iterations(WARMUP_MAX_VISITS - 1, &cell) == whole);
}

static void settles_when_two_in_a_row_agree(void) {
    EXPECT(!warmup_settled((const double[]){100}, 1));
    EXPECT(warmup_settled((const double[]){100, 105}, 2));
    EXPECT(warmup_settled((const double[]){105, 100}, 2));
    EXPECT(!warmup_settled((const double[]){100, 106}, 2));
    EXPECT(!warmup_settled((const double[]){100, 100, 50}, 3));
}

int main(void) {
    fills_the_visit();
    makes_more_where_few_are_not_enough();
    is_bounded();
    times_iterations_where_the_clock_is_cheap();
    warms_up_to_a_whole_visit();
    settles_when_two_in_a_row_agree();
    return EXPECT_STATUS();
}
