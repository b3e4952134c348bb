/* wulf-dgemm: how fast a BLAS library multiplies matrices.
 *
 * The library is loaded from the path that is given, so nothing of it needs to be known or installed when
 * this is built, and the system's own default stays what it is. One line of JSON says where dgemm_ really
 * came from (a libblas.so.3 may be a thin layer over another library), one comes for each product, one at the
 * end. Every product is checked with a random vector x: C x against A (B x) (Freivalds 1977). */
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/failure.h"
#include "core/options.h"
#include "core/record.h"
#include "core/rng.h"

/* As Fortran calls it; gfortran passes the lengths of texts at the end. */
typedef void dgemm_function(const char *, const char *, const int *, const int *, const int *, const double *,
                            const double *, const int *, const double *, const int *, const double *,
                            double *, const int *, size_t, size_t);

enum { MAX_SIZE = 20000, ALIGNMENT = 64, NOT_RIGHT_EXIT = 1 };
/* Of the residual, in roundings: a sum of n products is right within n of them, whatever its order. */
#define RESIDUAL_MAX 4.0

struct product {
    int n;
    double *a, *b, *c;
    double *x, *bx, *right, *found;
};

static double *numbers(size_t count) {
    const size_t bytes = (count * sizeof(double) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return aligned_alloc(ALIGNMENT, bytes);
}

static void draw(double *values, size_t count, uint64_t *state) {
    for (size_t i = 0; i < count; i++)
        values[i] = (double)(rng_next(state) >> 11) / 4503599627370496.0 - 1.0; /* in [-1, 1) */
}

static int product_open(struct product *product, int n) {
    const size_t side = (size_t)n;
    double **const parts[] = {&product->a,  &product->b,     &product->c,    &product->x,
                              &product->bx, &product->right, &product->found};
    product->n = n;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        *parts[i] = numbers(i < 3 ? side * side : side);
        if (*parts[i] == NULL)
            return -1;
    }
    uint64_t state = 1;
    draw(product->a, side * side, &state);
    draw(product->b, side * side, &state);
    draw(product->x, side, &state);
    return 0;
}

static void product_close(struct product *product) {
    double *const parts[] = {product->a,  product->b,     product->c,    product->x,
                             product->bx, product->right, product->found};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        free(parts[i]);
}

/* y = M x of a matrix in columns, and what its rounding is measured by: the largest sum of |M| |x|. */
static double times(const double *matrix, const double *x, double *y, int n) {
    const size_t side = (size_t)n;
    double largest = 0;
    for (size_t row = 0; row < side; row++) {
        double sum = 0;
        double magnitude = 0;
        for (size_t column = 0; column < side; column++) {
            sum += matrix[column * side + row] * x[column];
            magnitude += fabs(matrix[column * side + row] * x[column]);
        }
        y[row] = sum;
        largest = fmax(largest, magnitude);
    }
    return largest;
}

/* |C x - A (B x)| in units of what rounding may do; NaN where C has one. */
static double residual(const struct product *product) {
    times(product->b, product->x, product->bx, product->n);
    const double magnitude = times(product->a, product->bx, product->right, product->n);
    times(product->c, product->x, product->found, product->n);
    double largest = 0;
    for (int i = 0; i < product->n; i++) {
        const double far = fabs(product->found[i] - product->right[i]);
        if (!(far <= largest))
            largest = far;
    }
    return largest / (2.2204460492503131e-16 * (double)product->n * magnitude);
}

static void multiply(dgemm_function *dgemm, struct product *product) {
    const double one = 1.0;
    const double zero = 0.0;
    const int *const n = &product->n;
    dgemm("N", "N", n, n, n, &one, product->a, n, product->b, n, &zero, product->c, n, 1, 1);
}

static uint64_t cpu_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

static int line(struct record *record) {
    record_close(record, '}');
    const int code = record_write(record, STDOUT_FILENO);
    record_free(record);
    return code;
}

/* What a library says of itself, where it has such a function. */
static const char *version(void *library) {
    static const char *const names[] = {"openblas_get_config", "bli_info_get_version_str"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        void *const symbol = dlsym(library, names[i]);
        if (symbol != NULL) {
            const char *(*ask)(void) = NULL;
            memcpy(&ask, &symbol, sizeof ask); /* ISO C has no cast from data to functions */
            return ask();
        }
    }
    return "";
}

static int say_library(void *library, const void *symbol) {
    Dl_info where = {0};
    char path[4096] = "";
    if (dladdr(symbol, &where) == 0 || where.dli_fname == NULL || realpath(where.dli_fname, path) == NULL)
        path[0] = '\0';
    struct record record = {0};
    record_begin(&record, "library");
    record_pair_string(&record, "path", path);
    record_pair_string(&record, "version", version(library));
    return line(&record);
}

static int measure_one(dgemm_function *dgemm, struct product *product, double *worst) {
    memset(product->c, 0, (size_t)product->n * (size_t)product->n * sizeof(double));
    const uint64_t begin_cpu_ns = cpu_ns();
    const uint64_t begin_ns = clock_now_ns();
    multiply(dgemm, product);
    const double took_s = (double)(clock_now_ns() - begin_ns) / 1e9;
    const double busy_s = (double)(cpu_ns() - begin_cpu_ns) / 1e9;
    const double far = residual(product);
    const double n = (double)product->n;
    if (!(far <= *worst))
        *worst = far;
    struct record record = {0};
    record_begin(&record, "product");
    record_pair_double(&record, "time_s", took_s, 9);
    record_pair_double(&record, "gflops", 2 * n * n * n / took_s / 1e9, 4);
    record_pair_double(&record, "busy_cpus", busy_s / took_s, 3);
    record_pair_double(&record, "residual", far, 4);
    return line(&record);
}

static int measure(dgemm_function *dgemm, struct product *product, uint64_t repetitions, uint64_t for_ms) {
    double worst = 0;
    multiply(dgemm, product); /* threads start, pages come, clocks rise */
    const uint64_t begin_ns = clock_now_ns();
    for (uint64_t i = 0; i < repetitions || clock_now_ns() - begin_ns < for_ms * 1000000U; i++)
        if (measure_one(dgemm, product, &worst) != 0) {
            fprintf(stderr, "wulf-dgemm: cannot write to standard output: %s\n", strerror(errno));
            return FAILURE_EXIT;
        }
    if (worst <= RESIDUAL_MAX)
        return 0;
    fprintf(stderr, "wulf-dgemm: a product is wrong: its residual is %.3g, at most %.0f is right\n", worst,
            RESIDUAL_MAX);
    return NOT_RIGHT_EXIT;
}

static int run(const char *path, uint64_t n, uint64_t repetitions, uint64_t for_ms) {
    void *const library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (library == NULL) {
        fprintf(stderr, "wulf-dgemm: %s\n", dlerror());
        return USAGE_EXIT;
    }
    void *const symbol = dlsym(library, "dgemm_");
    if (symbol == NULL) {
        fprintf(stderr, "wulf-dgemm: %s has no dgemm_: it is no BLAS library with integers of 32 bits\n",
                path);
        return USAGE_EXIT;
    }
    dgemm_function *dgemm = NULL;
    memcpy(&dgemm, &symbol, sizeof dgemm);
    struct product product = {0};
    int code = FAILURE_EXIT;
    if (product_open(&product, (int)n) != 0)
        fprintf(stderr, "wulf-dgemm: not enough memory for matrices of %" PRIu64 " rows\n", n);
    else if (say_library(library, symbol) != 0)
        fprintf(stderr, "wulf-dgemm: cannot write to standard output: %s\n", strerror(errno));
    else
        code = measure(dgemm, &product, repetitions, for_ms);
    product_close(&product);
    return code; /* the library stays: its threads may still be there */
}

int main(int argc, char **argv) {
    uint64_t n = 1000;
    uint64_t repetitions = 3;
    uint64_t for_ms = 200;
    const struct option options[] = {
        OPTION_NUMBER("--size", &n, 1, MAX_SIZE, "rows and columns of the matrices"),
        OPTION_NUMBER("--products", &repetitions, 1, 1000000, "products at least"),
        OPTION_NUMBER("--for-ms", &for_ms, 0, 3600000, "go on for so long [ms]"),
    };
    const size_t count = sizeof options / sizeof options[0];
    char message[200] = "";
    if (argc < 2 || strcmp(argv[1], "--help") == 0) {
        options_help(options, count, "wulf-dgemm LIBRARY", "how fast a BLAS library multiplies matrices");
        return argc < 2 ? USAGE_EXIT : 0;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("%s\n", WULF_VERSION);
        return 0;
    }
    switch (options_read(options, count, argc - 1, argv + 1, message, sizeof message)) {
    case OPTIONS_RUN:
        return run(argv[1], n, repetitions, for_ms);
    case OPTIONS_WRONG:
        fprintf(stderr, "wulf-dgemm: %s\n", message);
        return USAGE_EXIT;
    default:
        options_help(options, count, "wulf-dgemm LIBRARY", "how fast a BLAS library multiplies matrices");
        return 0;
    }
}
