/* Communicators, and the number that each has in the trace. */
#ifndef WULF_TRACER_COMMUNICATORS_H
#define WULF_TRACER_COMMUNICATORS_H

#include <mpi.h>
#include <stdint.h>

/* The number of a communicator; one that was not seen before is described in the trace. */
uint16_t communicator_number(MPI_Comm comm);
/* How many neighbours this rank sends to in its collectives. */
int communicator_targets(MPI_Comm comm);
/* It is gone: its handle may be another one's. */
void communicator_forget(MPI_Comm comm);

#endif
