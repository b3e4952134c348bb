#ifndef WULF_GUARD_KIND_MPI_H
#define WULF_GUARD_KIND_MPI_H

#include "guard/kind.h"

/* Who called: root writes nothing for others where somebody else could make links. */
extern uid_t mpi_caller;
/* The file of Open MPI's parameters, as it really is. */
MUST_CHECK enum outcome mpi_file(const char **path);

#endif
