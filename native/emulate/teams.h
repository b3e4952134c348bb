/* Communicators of a pattern. */
#ifndef WULF_EMULATE_TEAMS_H
#define WULF_EMULATE_TEAMS_H

#include <mpi.h>
#include <stdbool.h>

#include "core/failure.h"
#include "emulate/stream.h"

/* One of them, as this rank has it. */
struct team {
    MPI_Comm comm; /* MPI_COMM_NULL: there is none of this number */
    int rank, ranks;
    int sources, targets; /* neighbours, where it has a graph */
    int *members;         /* as ranks of MPI_COMM_WORLD; behind them sources and targets, as ranks of it */
};

/* By their numbers in the trace. */
struct teams {
    struct team *items;
    size_t count;
};

/* Make all communicators that a stream describes, in its order, which is the same on all their members. Those
 * that neighbours talk on get their graph. */
int teams_make(struct teams *teams, const struct stream *stream, struct failure *failure);
void teams_free(struct teams *teams);

/* A team, or NULL where there is none of this number. */
static inline const struct team *team_at(const struct teams *teams, uint16_t number) {
    return number < teams->count && teams->items[number].comm != MPI_COMM_NULL ? &teams->items[number] : NULL;
}

#endif
