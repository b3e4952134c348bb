/* What the ranks of a job say of themselves before they begin. */
#ifndef WULF_MPI_RANKS_H
#define WULF_MPI_RANKS_H

#include <mpi.h>
#include <stdbool.h>

#include "core/node.h"

/* First line of what the library says of itself. */
const char *library_version(char text[MPI_MAX_LIBRARY_VERSION_STRING + 1]);

/* Whether the library was told that ranks give the CPU away while they wait. */
bool library_yields(void);

/* Where all ranks of `comm` run, on all of them; returns what the MPI library says. */
int nodes_gather(MPI_Comm comm, struct node *nodes);

#endif
