/* Barrier: no rank leaves before all have come. */
#include "probe/mpi/collective.h"

static int call(const struct part *part) { return MPI_Barrier(part->comm); }

WULF_COLLECTIVE("mpi_barrier", call, NULL, NULL, .pattern = "barrier",
                .summary = "MPI_Barrier: nobody leaves before all have come")
