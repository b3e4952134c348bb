/* The end of a job of which one rank cannot go on. */
#ifndef WULF_MPI_END_H
#define WULF_MPI_END_H

#include "core/failure.h"

/* End all ranks, once the launcher has read what this one has written to `fd`; does not return. */
void ranks_abort(int fd, int exit_code);
/* Write the line of `failure`, have the launcher read it, and end all ranks; does not return. */
void job_abort(const struct failure *failure, int rank);

#endif
