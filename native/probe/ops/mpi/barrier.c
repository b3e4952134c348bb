/* Barrier: no rank leaves before all have come. */
#include "probe/mpi/collective.h"
#include "probe/mpi/described.h"

static int call(const struct part *part) { return MPI_Barrier(part->comm); }

static int start(const struct part *part, MPI_Request *request) { return MPI_Ibarrier(part->comm, request); }

DESCRIBE(Barrier, part->comm)

WULF_COLLECTIVE("barrier", "MPI_Barrier: nobody leaves before all have come", 0, call, start, DESCRIBED, NULL,
                NULL, .pattern = "barrier")
