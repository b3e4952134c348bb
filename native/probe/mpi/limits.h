/* What the MPI library says of its own limits, by its tool interface (MPI-3.1, chapter 14). */
#ifndef WULF_MPI_LIMITS_H
#define WULF_MPI_LIMITS_H

#include <stddef.h>

#include "probe/report.h"

/* Read the eager limits that are in force on this rank; returns how many there are, `most` at most. A library
 * that does not say has none. After MPI_Init. */
size_t limits_read(struct limit *limits, size_t most);

#endif
