/* Sum of doubles over the ranks up to each. */
#include "probe/mpi/collective.h"
#include "probe/mpi/described.h"

static int call(const struct part *part) {
    return MPI_Scan(part->out, part->in, part->size / DOUBLE_BYTES, MPI_DOUBLE, MPI_SUM, part->comm);
}

static int start(const struct part *part, MPI_Request *request) {
    return MPI_Iscan(part->out, part->in, part->size / DOUBLE_BYTES, MPI_DOUBLE, MPI_SUM, part->comm,
                     request);
}

DESCRIBE(Scan, part->out, part->in, part->size / DOUBLE_BYTES, MPI_DOUBLE, MPI_SUM, part->comm)

static void fill(const struct part *part) { part_put_values(part, 1); }

static bool right(const struct part *part) { return part_has_sums(part, 0, part->rank + 1); }

WULF_COLLECTIVE("scan", "MPI_Scan: the sum of doubles over all ranks up to each", MESSAGE_MAX_BYTES, call,
                start, DESCRIBED, fill, right, .pattern = "prefix sum", .size_step = DOUBLE_BYTES)
