/* Communicators, and the number that each has in the trace. */
#ifndef WULF_TRACER_COMMUNICATORS_H
#define WULF_TRACER_COMMUNICATORS_H

#include <mpi.h>
#include <stdint.h>

#include "trace/format.h"

struct communicator {
    MPI_Comm comm;
    int targets; /* neighbours that this rank sends to */
    uint16_t number;
};

extern struct communicator last_communicator; /* that was asked for */

/* Look up one that is neither of MPI's own, and remember it; one that was not seen before is described in the
 * trace. */
uint16_t communicator_find(MPI_Comm comm);
/* One that will be like another when a request is complete is described as that. */
void communicator_will_be(MPI_Comm comm, MPI_Comm like);
/* How many neighbours this rank sends to in its collectives. */
int communicator_targets(MPI_Comm comm);
/* It is gone: its handle may be another one's. */
void communicator_forget(MPI_Comm comm);

static inline uint16_t communicator_number(MPI_Comm comm) {
    if (comm == MPI_COMM_WORLD)
        return TRACE_WORLD;
    if (comm == MPI_COMM_SELF)
        return TRACE_SELF;
    return comm == last_communicator.comm ? last_communicator.number : communicator_find(comm);
}

#endif
