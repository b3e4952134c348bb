/* wulf-cg: the smallest eigenvalue of a large sparse matrix, by conjugate gradients within the power method:
 * short messages, and sums of all ranks. By section 2.6 of the specification of the NAS Parallel Benchmarks
 * ("conjugate gradient"). Each rank has so many rows. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/nas.h"
#include "core/clock.h"

enum { INNER = 25, OUTER = 15, NONZERO_MOST = 12 };
static const uint64_t SEED = 314159265;
static const double CONDITION = 0.1, TOLERANCE = 1e-10;

struct class {
    int order, nonzero;
    double shift, zeta;
};

static const struct class CLASSES[] = {
    {1400, 7, 10, 8.5971775078648},
    {7000, 8, 12, 10.362595087124},
    {14000, 11, 20, 17.130235054029},
};

struct element {
    int row, column;
    double value;
};

/* One rank's rows of the matrix, by rows, and its part of the vectors. */
struct solver {
    const struct class *class;
    struct account *account;
    int rank, ranks, first, rows;
    int *counts, *places; /* rows of each rank */
    int *begin, *columns; /* of each row */
    double *values;
    double *x, *z, *r, *q, *p; /* own rows */
    double *whole;             /* p of all ranks */
};

/* --- the matrix: a sum of outer products of sparse random vectors ------------------------------------------
 */

struct sparse {
    int count;
    int places[NONZERO_MOST];
    double values[NONZERO_MOST];
};

static int find(const struct sparse *vector, int place) {
    for (int i = 0; i < vector->count; i++)
        if (vector->places[i] == place)
            return i;
    return -1;
}

/* So many different places, each with a random value; a place is a random number below a power of two. */
static void draw(struct sparse *vector, const struct class *class, uint64_t *state) {
    int power = 1;
    while (power < class->order)
        power *= 2;
    vector->count = 0;
    while (vector->count < class->nonzero) {
        const double value = nas_next(state);
        const int place = (int)(power * nas_next(state));
        if (place >= class->order || find(vector, place) >= 0)
            continue;
        vector->places[vector->count] = place;
        vector->values[vector->count++] = value;
    }
}

/* The place on the diagonal has one half. */
static void set_own(struct sparse *vector, int place) {
    const int found = find(vector, place);
    const int at = found >= 0 ? found : vector->count++;
    vector->places[at] = place;
    vector->values[at] = 0.5;
}

static int compare(const void *one, const void *other) {
    const struct element *a = one;
    const struct element *b = other;
    if (a->row != b->row)
        return a->row < b->row ? -1 : 1;
    return a->column < b->column ? -1 : a->column > b->column;
}

/* The elements of own rows, each as often as it is added to; `room` is for all of them. */
static size_t draw_all(const struct solver *solver, struct element *elements) {
    const struct class *class = solver->class;
    const double ratio = pow(CONDITION, 1.0 / class->order);
    uint64_t state = SEED;
    size_t count = 0;
    double size = 1;
    nas_next(&state); /* the specification's programs take one before the matrix */
    for (int outer = 0; outer < class->order; outer++, size *= ratio) {
        struct sparse vector;
        draw(&vector, class, &state);
        set_own(&vector, outer);
        for (int i = 0; i < vector.count; i++) {
            const int row = vector.places[i];
            if (row < solver->first || row >= solver->first + solver->rows)
                continue;
            for (int j = 0; j < vector.count; j++)
                elements[count++] =
                    (struct element){row, vector.places[j], vector.values[i] * vector.values[j] * size};
        }
    }
    for (int row = solver->first; row < solver->first + solver->rows; row++)
        elements[count++] = (struct element){row, row, CONDITION - class->shift};
    return count;
}

/* Elements of one place become one. */
static int keep(struct solver *solver, struct element *elements, size_t count) {
    size_t kept = 0;
    qsort(elements, count, sizeof *elements, compare);
    for (size_t i = 0; i < count; i++) {
        if (kept > 0 && compare(&elements[kept - 1], &elements[i]) == 0)
            elements[kept - 1].value += elements[i].value;
        else
            elements[kept++] = elements[i];
    }
    solver->begin = calloc((size_t)solver->rows + 1, sizeof *solver->begin);
    solver->columns = malloc((kept + 1) * sizeof *solver->columns);
    solver->values = malloc((kept + 1) * sizeof *solver->values);
    if (solver->begin == NULL || solver->columns == NULL || solver->values == NULL)
        return MPI_ERR_NO_MEM;
    for (size_t i = 0; i < kept; i++) {
        solver->columns[i] = elements[i].column;
        solver->values[i] = elements[i].value;
        solver->begin[elements[i].row - solver->first + 1] = (int)i + 1;
    }
    for (int row = 0; row < solver->rows; row++)
        if (solver->begin[row + 1] < solver->begin[row])
            solver->begin[row + 1] = solver->begin[row];
    return MPI_SUCCESS;
}

static int make_matrix(struct solver *solver) {
    const size_t each = (size_t)solver->class->nonzero + 1;
    struct element *elements =
        malloc(((size_t)solver->class->order * each * each + (size_t)solver->rows) * sizeof *elements);
    if (elements == NULL)
        return MPI_ERR_NO_MEM;
    const int code = keep(solver, elements, draw_all(solver, elements));
    free(elements);
    return code;
}

/* --- the solution ----------------------------------------------------------------------------------------
 */

static int dot(const struct solver *solver, const double *a, const double *b, double *sum) {
    double own = 0;
    for (int i = 0; i < solver->rows; i++)
        own += a[i] * b[i];
    account_enter(solver->account);
    const int code = MPI_Allreduce(&own, sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    account_leave(solver->account);
    account_sent(solver->account, sizeof own);
    return code;
}

/* out = A in, of own rows. */
static int multiply(const struct solver *solver, const double *in, double *out) {
    account_enter(solver->account);
    const int code = MPI_Allgatherv(in, solver->rows, MPI_DOUBLE, solver->whole, solver->counts,
                                    solver->places, MPI_DOUBLE, MPI_COMM_WORLD);
    account_leave(solver->account);
    account_sent(solver->account, (uint64_t)solver->rows * sizeof *in);
    for (int row = 0; row < solver->rows; row++) {
        double sum = 0;
        for (int at = solver->begin[row]; at < solver->begin[row + 1]; at++)
            sum += solver->values[at] * solver->whole[solver->columns[at]];
        out[row] = sum;
    }
    return code;
}

/* z = A⁻¹ x, nearly: so many steps. */
static int solve(const struct solver *solver) {
    const size_t bytes = (size_t)solver->rows * sizeof(double);
    double rho = 0;
    memset(solver->z, 0, bytes);
    memcpy(solver->r, solver->x, bytes);
    memcpy(solver->p, solver->x, bytes);
    int code = dot(solver, solver->r, solver->r, &rho);
    for (int step = 0; step < INNER && code == MPI_SUCCESS; step++) {
        double slope = 0;
        double next = 0;
        code = multiply(solver, solver->p, solver->q);
        if (code == MPI_SUCCESS)
            code = dot(solver, solver->p, solver->q, &slope);
        const double alpha = rho / slope;
        for (int i = 0; i < solver->rows; i++) {
            solver->z[i] += alpha * solver->p[i];
            solver->r[i] -= alpha * solver->q[i];
        }
        if (code == MPI_SUCCESS)
            code = dot(solver, solver->r, solver->r, &next);
        for (int i = 0; i < solver->rows; i++)
            solver->p[i] = solver->r[i] + next / rho * solver->p[i];
        rho = next;
    }
    return code;
}

/* A step of the power method. */
static int improve(const struct solver *solver, double *zeta) {
    double along = 0;
    double square = 0;
    int code = solve(solver);
    if (code == MPI_SUCCESS)
        code = dot(solver, solver->x, solver->z, &along);
    if (code == MPI_SUCCESS)
        code = dot(solver, solver->z, solver->z, &square);
    *zeta = solver->class->shift + 1 / along;
    for (int i = 0; i < solver->rows; i++)
        solver->x[i] = solver->z[i] / sqrt(square);
    return code;
}

static void begin_with_ones(const struct solver *solver) {
    for (int i = 0; i < solver->rows; i++)
        solver->x[i] = 1;
}

static int solve_all(const struct solver *solver, bool *right) {
    double zeta = 0;
    begin_with_ones(solver);
    int code = improve(solver, &zeta); /* finds cold pages */
    solver->account->communication_ns = solver->account->messages = solver->account->bytes = 0;
    begin_with_ones(solver);
    if (code == MPI_SUCCESS)
        code = MPI_Barrier(MPI_COMM_WORLD);
    const uint64_t begin_ns = clock_now_ns();
    for (int step = 0; step < OUTER && code == MPI_SUCCESS; step++)
        code = improve(solver, &zeta);
    solver->account->run_ns = clock_now_ns() - begin_ns;
    *right = fabs(zeta - solver->class->zeta) <= TOLERANCE;
    if (solver->rank == 0)
        printf("zeta %.13f\n", zeta);
    return code;
}

static int divide(struct solver *solver) {
    solver->counts = calloc((size_t)solver->ranks, sizeof *solver->counts);
    solver->places = calloc((size_t)solver->ranks, sizeof *solver->places);
    if (solver->counts == NULL || solver->places == NULL)
        return MPI_ERR_NO_MEM;
    for (int rank = 0; rank < solver->ranks; rank++) {
        const uint64_t order = (uint64_t)solver->class->order;
        solver->places[rank] = (int)nas_begin(order, rank, solver->ranks);
        solver->counts[rank] = (int)nas_begin(order, rank + 1, solver->ranks) - solver->places[rank];
    }
    solver->first = solver->places[solver->rank];
    solver->rows = solver->counts[solver->rank];
    return MPI_SUCCESS;
}

static int kernel(int number, struct account *account, bool *right) {
    struct solver solver = {.class = &CLASSES[number], .account = account};
    MPI_Comm_rank(MPI_COMM_WORLD, &solver.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &solver.ranks);
    int code = divide(&solver);
    if (code == MPI_SUCCESS)
        code = make_matrix(&solver);
    const size_t rows = (size_t)solver.rows + 1;
    double *const vectors = malloc((5 * rows + (size_t)solver.class->order) * sizeof *vectors);
    if (vectors == NULL)
        code = MPI_ERR_NO_MEM;
    if (code == MPI_SUCCESS) {
        solver.x = vectors;
        solver.z = solver.x + rows;
        solver.r = solver.z + rows;
        solver.q = solver.r + rows;
        solver.p = solver.q + rows;
        solver.whole = solver.p + rows;
        code = solve_all(&solver, right);
    }
    free(vectors);
    free(solver.values);
    free(solver.columns);
    free(solver.begin);
    free(solver.places);
    free(solver.counts);
    return code;
}

int main(int argc, char **argv) {
    return nas_main(argc, argv, "cg", "the smallest eigenvalue of a sparse matrix: short messages and sums",
                    kernel);
}
