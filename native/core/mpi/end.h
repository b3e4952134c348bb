/* The end of a job of which one rank cannot go on. */
#ifndef WULF_MPI_END_H
#define WULF_MPI_END_H

#include "core/failure.h"

/* Write the line of `failure`, have the launcher read it, and end all ranks; does not return. */
void job_abort(const struct failure *failure, int rank);

#endif
