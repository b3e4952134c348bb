/* wulf-ep: pairs of Gaussian deviates are made and counted by square annuli; ranks meet only in the end. By
 * section 2.4 of the specification of the NAS Parallel Benchmarks ("embarrassingly parallel"). */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "apps/nas.h"

enum { ANNULI = 10 };
static const uint64_t SEED = 271828183;
static const double TOLERANCE = 1e-8;

struct class {
    uint64_t pairs;
    double sum_x, sum_y;
};

static const struct class CLASSES[] = {
    {UINT64_C(1) << 24, -3.247834652034740e3, -6.958407078382297e3},
    {UINT64_C(1) << 25, -2.863319731645753e3, -6.320053679109499e3},
    {UINT64_C(1) << 28, -4.295875165629892e3, -1.580732573678431e4},
};

/* Of the pairs of one rank: sums of both deviates, then how many are in each annulus. */
static void count(uint64_t begin, uint64_t end, double *found) {
    uint64_t state = nas_after(SEED, 2 * begin);
    for (uint64_t pair = begin; pair < end; pair++) {
        const double x = 2 * nas_next(&state) - 1;
        const double y = 2 * nas_next(&state) - 1;
        const double square = x * x + y * y;
        if (square > 1)
            continue;
        const double factor = sqrt(-2 * log(square) / square);
        const double largest = fmax(fabs(x * factor), fabs(y * factor));
        found[0] += x * factor;
        found[1] += y * factor;
        found[2 + (int)largest] += 1;
    }
}

static bool near(double found, double known) { return fabs((found - known) / known) <= TOLERANCE; }

static int kernel(int number, struct account *account, bool *right) {
    const struct class *class = &CLASSES[number];
    double own[2 + ANNULI] = {0};
    double all[2 + ANNULI] = {0};
    int rank = 0;
    int ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    count(nas_begin(class->pairs, rank, ranks), nas_begin(class->pairs, rank + 1, ranks), own);
    account_enter(account);
    const int code = MPI_Allreduce(own, all, 2 + ANNULI, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    account_leave(account);
    account_sent(account, sizeof own);
    *right = near(all[0], class->sum_x) && near(all[1], class->sum_y);
    if (rank == 0)
        printf("sum_x %.15e\nsum_y %.15e\n", all[0], all[1]);
    return code;
}

int main(int argc, char **argv) {
    return nas_main(argc, argv, "ep", "pairs of Gaussian deviates, counted: ranks hardly communicate",
                    kernel);
}
