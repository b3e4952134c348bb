#include "emulate/shares.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/lines.h"
#include "core/sort.h"

enum { TIME, COMPUTE, ASKED, HAS, FIELDS };

int shares_new(struct shares *shares, size_t programs, size_t passes, struct failure *failure) {
    const size_t count = programs * passes;
    *shares = (struct shares){.programs = programs,
                              .passes = passes,
                              .time_ns = calloc(count, sizeof *shares->time_ns),
                              .compute_ns = calloc(count, sizeof *shares->compute_ns),
                              .asked_ns = calloc(count, sizeof *shares->asked_ns)};
    if (shares->time_ns != NULL && shares->compute_ns != NULL && shares->asked_ns != NULL)
        return 0;
    return failure_set(failure, "system", "", "no memory for results");
}

void shares_free(struct shares *shares) {
    free(shares->time_ns);
    free(shares->compute_ns);
    free(shares->asked_ns);
}

void shares_add(struct shares *shares, const struct emulation *emulation) {
    for (size_t program = 1; program < emulation->survey.programs; program++) {
        const size_t place = program * shares->passes + shares->made;
        shares->time_ns[place] = emulation->notes[program].time_ns;
        shares->compute_ns[place] = emulation->notes[program].compute_ns;
        shares->asked_ns[place] = emulation->notes[program].asked_ns;
    }
    shares->made++;
}

static void record_field(struct record *record, const char *key, const uint64_t *all, int ranks, int field) {
    record_key(record, key);
    record_open(record, '[');
    for (int rank = 0; rank < ranks; rank++)
        if (all[rank * FIELDS + HAS] != 0)
            record_unsigned(record, field == HAS ? (uint64_t)rank : all[rank * FIELDS + field]);
    record_close(record, ']');
}

static int print(size_t program, const uint64_t *all, int ranks) {
    struct record record = {0};
    record_begin(&record, "program");
    record_pair_unsigned(&record, "number", program - 1);
    record_field(&record, "ranks", all, ranks, HAS);
    record_field(&record, "time_ns", all, ranks, TIME);
    record_field(&record, "compute_ns", all, ranks, COMPUTE);
    record_field(&record, "asked_ns", all, ranks, ASKED);
    return line_write(&record, STDOUT_FILENO);
}

static uint64_t median(const uint64_t *values, size_t count, uint64_t *room) {
    memcpy(room, values, count * sizeof *values);
    return (uint64_t)median_u64(room, count);
}

int shares_print(const struct shares *shares, const struct emulation *emulation, struct failure *failure) {
    uint64_t *all = calloc((size_t)emulation->ranks * FIELDS, sizeof *all);
    uint64_t *room = calloc(shares->passes, sizeof *room);
    int result =
        all != NULL && room != NULL ? 0 : failure_set(failure, "system", "", "no memory for results");
    for (size_t program = 1; program < shares->programs && result == 0; program++) {
        const size_t first = program * shares->passes;
        const bool has = program < emulation->survey.programs && emulation->survey.iterations[program] > 0;
        const uint64_t own[FIELDS] = {median(shares->time_ns + first, shares->passes, room),
                                      median(shares->compute_ns + first, shares->passes, room),
                                      median(shares->asked_ns + first, shares->passes, room), has};
        if (MPI_Gather(own, FIELDS, MPI_UINT64_T, all, FIELDS, MPI_UINT64_T, 0, MPI_COMM_WORLD) !=
            MPI_SUCCESS)
            result = failure_set(failure, "mpi", "", "the ranks could not tell what they did");
        else if (emulation->rank == 0 && print(program, all, emulation->ranks) != 0)
            result = failure_set(failure, "system", "", "cannot write: %s", strerror(errno));
    }
    free(all);
    free(room);
    return result;
}
