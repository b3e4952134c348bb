/* Pairs of ranks that measure at the same time in one job: ranks 0 and 1, 2 and 3 and so on. */
#ifndef WULF_AT_ONCE_H
#define WULF_AT_ONCE_H

#include "core/node.h"
#include "probe/launch.h"
#include "probe/mpi/link.h"

/* One rank's part in it. */
struct at_once {
    struct mpi_link pair;   /* to the other rank of the pair */
    struct channel channel; /* of that link */
    struct company company; /* for the one that measures */
    MPI_Comm leaders;       /* of all that measure */
    int count;              /* of those */
    size_t lines;           /* of the results of each of them */
};

/* Find this rank's pair. `nodes`: where each rank runs. 0, or -1 with `failure`. */
int at_once_begin(struct at_once *at_once, const struct arguments *arguments, int rank,
                  const struct node *nodes, struct failure *failure);

/* On a rank that measures and is not rank 0: measure, and let that one print the lines. 0, or -1 with
 * `failure`, which rank 0 prints if it waits for the others then. */
int at_once_measure(struct at_once *at_once, const struct arguments *arguments, struct failure *failure);

#endif
