/* What the MPI library says of its own parameters, by its tool interface (MPI-3.1, chapter 14). */
#ifndef WULF_MPI_PARAMETERS_H
#define WULF_MPI_PARAMETERS_H

#include <stddef.h>

#include "core/lines.h"

/* Read the eager limits that are in force on this rank; returns how many there are, `most` at most. A library
 * that does not say has none. After MPI_Init. */
size_t limits_read(struct limit *limits, size_t most);

/* Print which library it is, and every parameter with its value in force here, a line of JSON each; needs no
 * MPI_Init. 0, or -1 when the library does not say, or the lines cannot be written. */
int parameters_print(int fd);

#endif
