#include "emulate/pass.h"

#include <sched.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/mpi/clocks.h"

/* Until the begin: what it takes to tell all ranks of it, and to compare clocks is longer. */
static const int64_t SPARE_NS = 1000000;

/* This rank's clock, against that of rank 0. */
struct ahead {
    int64_t at_ns, by_ns;          /* how far it was ahead then */
    int64_t later_ns, later_by_ns; /* … and after the pass */
};

static int64_t now_ns(void) { return (int64_t)clock_now_ns(); }

int pass_new(struct pass *pass, const uint64_t *iterations, size_t programs, int ranks,
             struct failure *failure) {
    *pass = (struct pass){.ended_ns = calloc(programs, sizeof *pass->ended_ns),
                          .exits_ns = calloc((size_t)ranks, sizeof *pass->exits_ns)};
    bool has_all = pass->ended_ns != NULL && pass->exits_ns != NULL;
    for (size_t program = 0; program < programs && has_all; program++) {
        pass->ended_ns[program] = calloc(iterations[program] + 1, sizeof **pass->ended_ns);
        has_all = pass->ended_ns[program] != NULL;
    }
    return has_all ? 0 : failure_set(failure, "system", "", "no memory for times");
}

void pass_free(struct pass *pass, size_t programs) {
    for (size_t program = 0; program < programs && pass->ended_ns != NULL; program++)
        free(pass->ended_ns[program]);
    free(pass->ended_ns);
    free(pass->exits_ns);
}

/* When all begin, on this rank's clock: rank 0 says it. */
static int agree(int64_t took_ns, int64_t ahead_ns, int64_t *begin_ns) {
    int64_t begin = now_ns() + 2 * took_ns + SPARE_NS;
    const int code = MPI_Bcast(&begin, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
    *begin_ns = begin + ahead_ns;
    return code;
}

static int64_t wait_until(int64_t begin_ns) {
    int64_t now = now_ns();
    while (now < begin_ns) {
        sched_yield(); /* ranks may share a CPU */
        now = now_ns();
    }
    return now - begin_ns;
}

/* A time of this rank's clock on that of rank 0: between two comparisons clocks drift apart evenly. */
static int64_t common(const struct ahead *ahead, int64_t time_ns) {
    const double whole = (double)(ahead->later_ns - ahead->at_ns);
    const double part = whole > 0 ? (double)(time_ns - ahead->at_ns) / whole : 0;
    const double by_ns = (double)(ahead->later_by_ns - ahead->by_ns) * part;
    return time_ns - ahead->by_ns - (int64_t)by_ns;
}

/* The last of all ranks, at rank 0. */
static int collect(struct pass *pass, struct emulation *emulation, const uint64_t *iterations,
                   size_t programs, const struct ahead *ahead, int64_t begin_ns) {
    int code = MPI_SUCCESS;
    int64_t *none = NULL;
    for (size_t program = 1; program < programs && code == MPI_SUCCESS; program++) {
        struct notes *notes = program < emulation->survey.programs ? &emulation->notes[program] : NULL;
        int64_t *own = notes != NULL && notes->iterations > 0 ? notes->ended_ns : NULL;
        for (uint64_t i = 0; own != NULL && i < iterations[program]; i++)
            own[i] = common(ahead, own[i]) - begin_ns;
        if (own == NULL && (none = calloc(iterations[program] + 1, sizeof *none)) == NULL)
            return emulation_failed(emulation, "no memory for times");
        code = MPI_Reduce(own != NULL ? own : none, pass->ended_ns == NULL ? NULL : pass->ended_ns[program],
                          (int)iterations[program], MPI_INT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
        free(none);
        none = NULL;
    }
    return code;
}

static int gather(struct pass *pass, int64_t ended_ns, int64_t late_ns, const struct ahead *ahead) {
    const double exit_ns = (double)ended_ns;
    const int64_t apart_ns = ahead->later_by_ns - ahead->by_ns;
    const double own[] = {(double)late_ns, (double)(apart_ns < 0 ? -apart_ns : apart_ns)};
    double most[] = {0, 0};
    int code = MPI_Gather(&exit_ns, 1, MPI_DOUBLE, pass->exits_ns, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (code == MPI_SUCCESS)
        code = MPI_Reduce(own, most, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    pass->late_ns = most[0];
    pass->clock_error_ns = most[1];
    return code;
}

static int mpi_said(struct emulation *emulation, int code) {
    if (code == MPI_SUCCESS)
        return 0;
    emulation_failed(emulation, "the ranks could not agree on a common time");
    return -1;
}

int pass_make(struct pass *pass, struct emulation *emulation, const uint64_t *iterations, size_t programs) {
    struct ahead ahead = {0};
    int64_t begin_ns = 0;
    compute_calibrate(&emulation->compute);
    emulation_rewind(emulation);
    int code = MPI_Barrier(MPI_COMM_WORLD);
    const int64_t asked_ns = now_ns();
    if (code == MPI_SUCCESS)
        code = clocks_compare(MPI_COMM_WORLD, &ahead.by_ns);
    ahead.at_ns = now_ns();
    if (code == MPI_SUCCESS)
        code = agree(ahead.at_ns - asked_ns, ahead.by_ns, &begin_ns);
    if (code != MPI_SUCCESS)
        return mpi_said(emulation, code);
    const int64_t late_ns = wait_until(begin_ns);
    if (emulation_perform(emulation, emulation->survey.tail) != 0)
        return -1;
    const int64_t ended_ns = now_ns();
    code = MPI_Barrier(MPI_COMM_WORLD);
    if (code == MPI_SUCCESS)
        code = clocks_compare(MPI_COMM_WORLD, &ahead.later_by_ns);
    ahead.later_ns = now_ns();
    const int64_t common_begin_ns = begin_ns - ahead.by_ns;
    if (code == MPI_SUCCESS)
        code = collect(pass, emulation, iterations, programs, &ahead, common_begin_ns);
    if (code == MPI_SUCCESS)
        code = gather(pass, common(&ahead, ended_ns) - common_begin_ns, late_ns, &ahead);
    return mpi_said(emulation, code);
}
