/* wulf-heat: the heat equation du/dt = d2u/dx2 + d2u/dy2 by explicit finite differences on a periodic field.
 *
 * The field is cut into strips of rows, one a rank, on a ring: in every step each rank sends its first and
 * its last row to its neighbours. One column is the one-dimensional equation, with messages of 8 bytes. The
 * field begins as a sine wave, whose analytic solution only decays: the result is held against it, and
 * refused where it is further away than the scheme's own error explains. */
#include <inttypes.h>
#include <math.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/account.h"
#include "core/clock.h"

/* dt / dx2; the scheme is stable up to 1/4. */
#define RATIO 0.2
/* Points in a wave at least: fewer do not show it. */
#define WAVE_POINTS 16
#define TAU 6.283185307179586

enum { TAG_UP, TAG_DOWN };

struct field {
    size_t rows, columns; /* of the whole */
    size_t first, own;    /* rows of this rank */
    int rank, above, below, ranks;
    double *now, *next;      /* own + 2 rows: the neighbours' are the first and the last */
    double angle_x, angle_y; /* of the wave, from one point to the next [rad] */
};

/* A wave that decays to about 1/e in so many steps: a result that is all zero would prove nothing. */
static double angle(size_t points, uint64_t steps) {
    const double wanted = (double)points * sqrt(1.0 / (RATIO * (double)steps)) / TAU;
    const double most = floor((double)points / WAVE_POINTS);
    const double waves = fmin(fmax(round(wanted), 1.0), most);
    return waves * TAU /
           (double)points; /* 0, a field that is level this way, where there are too few points */
}

static double beginning(const struct field *field, size_t row, size_t column) {
    return sin(field->angle_x * (double)row) * cos(field->angle_y * (double)column);
}

static int field_open(struct field *field, size_t rows, size_t columns, uint64_t steps) {
    MPI_Comm_rank(MPI_COMM_WORLD, &field->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &field->ranks);
    const size_t rank = (size_t)field->rank;
    const size_t ranks = (size_t)field->ranks;
    field->rows = rows;
    field->columns = columns;
    field->first = rows * rank / ranks;
    field->own = rows * (rank + 1) / ranks - field->first;
    field->above = (field->rank + field->ranks - 1) % field->ranks;
    field->below = (field->rank + 1) % field->ranks;
    field->angle_x = angle(rows, steps);
    field->angle_y = angle(columns, steps);
    field->now = calloc((field->own + 2) * columns, sizeof(double));
    field->next = calloc((field->own + 2) * columns, sizeof(double));
    if (field->now == NULL || field->next == NULL)
        return -1;
    for (size_t row = 0; row < field->own; row++)
        for (size_t column = 0; column < columns; column++)
            field->now[(row + 1) * columns + column] = beginning(field, field->first + row, column);
    return 0;
}

static void field_close(struct field *field) {
    free(field->now);
    free(field->next);
}

/* Rows of the neighbours to the first and the last place. */
static int exchange(struct field *field, struct account *account) {
    const size_t columns = field->columns;
    const int count = (int)columns;
    double *const first = field->now + columns;
    double *const last = field->now + field->own * columns;
    if (field->ranks == 1) {
        memcpy(field->now, last, columns * sizeof(double));
        memcpy(last + columns, first, columns * sizeof(double));
        return MPI_SUCCESS;
    }
    account_enter(account);
    int code = MPI_Sendrecv(first, count, MPI_DOUBLE, field->above, TAG_UP, last + columns, count, MPI_DOUBLE,
                            field->below, TAG_UP, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (code == MPI_SUCCESS)
        code = MPI_Sendrecv(last, count, MPI_DOUBLE, field->below, TAG_DOWN, field->now, count, MPI_DOUBLE,
                            field->above, TAG_DOWN, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    account_leave(account);
    account_sent(account, columns * sizeof(double));
    account_sent(account, columns * sizeof(double));
    return code;
}

static inline double stepped(const double *at, size_t columns, double left, double right) {
    return *at + RATIO * (at[-(ptrdiff_t)columns] + at[columns] + left + right - 4 * *at);
}

static void step(struct field *field) {
    const size_t columns = field->columns;
    for (size_t row = 1; row <= field->own; row++) {
        const double *const from = field->now + row * columns;
        double *const to = field->next + row * columns;
        to[0] = stepped(from, columns, from[columns - 1], from[columns > 1 ? 1 : 0]);
        for (size_t column = 1; column + 1 < columns; column++)
            to[column] = stepped(from + column, columns, from[column - 1], from[column + 1]);
        if (columns > 1)
            to[columns - 1] = stepped(from + columns - 1, columns, from[columns - 2], from[0]);
    }
    double *const old = field->now;
    field->now = field->next;
    field->next = old;
}

/* Largest distance from the analytic solution on this rank; NaN where a value is none. */
static double distance(const struct field *field, uint64_t steps) {
    const double rate = field->angle_x * field->angle_x + field->angle_y * field->angle_y;
    const double decay = exp(-RATIO * (double)steps * rate);
    double largest = 0;
    for (size_t row = 0; row < field->own; row++)
        for (size_t column = 0; column < field->columns; column++) {
            const double found = field->now[(row + 1) * field->columns + column];
            const double far = fabs(found - decay * beginning(field, field->first + row, column));
            if (!(far <= largest))
                largest = far;
        }
    return largest;
}

/* Twice what the scheme itself is away: a step multiplies the wave by 1 - 4 r (sin2(x/2) + sin2(y/2)) where
 * the equation says exp(-r (x2 + y2)). And the rounding of so many steps. */
static double tolerance(const struct field *field, uint64_t steps) {
    const double n = (double)steps;
    const double sx = sin(field->angle_x / 2);
    const double sy = sin(field->angle_y / 2);
    const double rate = field->angle_x * field->angle_x + field->angle_y * field->angle_y;
    const double scheme = exp(n * log1p(-4 * RATIO * (sx * sx + sy * sy)));
    return 2 * fabs(scheme - exp(-RATIO * n * rate)) + 1e-15 * (n + 10);
}

static int run(struct field *field, uint64_t steps, struct account *account) {
    int code = MPI_Barrier(MPI_COMM_WORLD);
    const uint64_t begin_ns = clock_now_ns();
    for (uint64_t i = 0; i < steps && code == MPI_SUCCESS; i++) {
        code = exchange(field, account);
        step(field);
    }
    if (code == MPI_SUCCESS)
        code = MPI_Barrier(MPI_COMM_WORLD);
    account->run_ns = clock_now_ns() - begin_ns;
    return code;
}

/* The largest of all ranks, at every rank; a NaN of any is one of all. */
static int largest(double own, double *of_all) {
    double values[] = {isnan(own) ? 0 : own, isnan(own) ? 1 : 0};
    const int code = MPI_Allreduce(MPI_IN_PLACE, values, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    *of_all = values[1] > 0 ? NAN : values[0];
    return code;
}

static int solve(size_t rows, size_t columns, uint64_t steps) {
    struct field field = {0};
    struct account account = {0};
    struct total total = {0};
    double error = NAN;
    int opened = field_open(&field, rows, columns, steps);
    int code = MPI_Allreduce(MPI_IN_PLACE, &opened, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (opened != 0 && field.rank == 0)
        fprintf(stderr, "wulf-heat: not enough memory for %zu x %zu points\n", rows, columns);
    if (opened == 0 && code == MPI_SUCCESS)
        code = run(&field, steps, &account);
    if (opened == 0 && code == MPI_SUCCESS)
        code = largest(distance(&field, steps), &error);
    if (opened == 0 && code == MPI_SUCCESS)
        code = account_total(&account, &total);
    const double limit = tolerance(&field, steps);
    const bool right = error <= limit;
    if (opened == 0 && code == MPI_SUCCESS && field.rank == 0) {
        printf("program heat\nranks %d\nrows %zu\ncolumns %zu\nsteps %" PRIu64 "\n", field.ranks, rows,
               columns, steps);
        account_print(&total);
        printf("error %.3e\ntolerance %.3e\nresult %s\n", error, limit, right ? "right" : "wrong");
        if (!right)
            fprintf(stderr, "wulf-heat: the result is %.3e away from the analytic solution, more than %.3e\n",
                    error, limit);
    }
    field_close(&field);
    return right && code == MPI_SUCCESS ? EXIT_RIGHT : EXIT_NOT_RIGHT;
}

int main(int argc, char **argv) {
    uint64_t rows = 2048;
    uint64_t columns = 512;
    uint64_t steps = 1000;
    const struct option options[] = {
        OPTION_NUMBER("--rows", &rows, WAVE_POINTS, UINT32_MAX,
                      "points across the strips; each rank has its share"),
        OPTION_NUMBER("--columns", &columns, 1, 1 << 20,
                      "points along a strip: a message has 8 bytes for each"),
        OPTION_NUMBER("--steps", &steps, 1, UINT32_MAX, "steps in time"),
    };
    int code = EXIT_NOT_RIGHT;
    if (!application_begin(options, sizeof options / sizeof options[0], &argc, &argv,
                           "the heat equation on a ring of strips, held against its analytic solution",
                           &code))
        return code;
    int ranks = 1;
    int rank = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if ((uint64_t)ranks <= rows)
        code = solve((size_t)rows, (size_t)columns, steps);
    else
        code = EXIT_USAGE;
    if (code == EXIT_USAGE && rank == 0)
        fprintf(stderr, "wulf-heat: %d ranks cannot share %" PRIu64 " rows; give more with --rows\n", ranks,
                rows);
    MPI_Finalize();
    return code;
}
