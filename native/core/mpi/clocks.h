/* One time for all ranks: that of rank 0. */
#ifndef WULF_MPI_CLOCKS_H
#define WULF_MPI_CLOCKS_H

#include <mpi.h>
#include <stdint.h>

/* How far this rank's clock is ahead of that of rank 0 [ns]: found by ping-pongs in as many rounds as the
 * number of ranks has bits, each with a rank that knows already. Of several ping-pongs the shortest counts.
 * All ranks of `comm` call it; returns what the MPI library says. */
int clocks_compare(MPI_Comm comm, int64_t *ahead_ns);

#endif
