/* Messages of doubles that lie apart in memory: every so many of them one is sent, as of a column of a
 * matrix. */
#ifndef WULF_MPI_STRIDED_H
#define WULF_MPI_STRIDED_H

#include "probe/mpi/loops.h"

enum { ELEMENT = sizeof(double), STRIDED_MAX_BYTES = 128 << 10, STRIDE_USUAL = 128, STRIDE_MOST = 1024 };

struct strided {
    unsigned char *memory;
    size_t stride, elements, rest; /* [B], whole elements, and bytes beyond them */
    MPI_Datatype type;
};

/* The visit's payload, spread; the responder's is empty. */
int strided_open(struct strided *strided, const struct visit *visit, bool filled, struct failure *failure);
void strided_close(struct strided *strided);

void strided_gather(const struct strided *strided, unsigned char *message);
void strided_scatter(const struct strided *strided, const unsigned char *message);

/* The visits of a ping-pong of such a message, whichever way it is sent. */
__attribute__((always_inline)) static inline int strided_initiate(struct visit *visit, mpi_iteration bounce,
                                                                  struct failure *failure) {
    struct strided strided;
    struct mpi_side side = mpi_side(visit, &strided);
    int result = strided_open(&strided, visit, true, failure);
    if (result == 0)
        result = mpi_initiate(visit, &side, bounce, failure);
    if (result == 0)
        strided_gather(&strided, visit->buffer);
    strided_close(&strided);
    return result;
}

__attribute__((always_inline)) static inline int strided_respond(struct visit *visit, mpi_iteration answer,
                                                                 struct failure *failure) {
    struct strided strided;
    struct mpi_side side = mpi_side(visit, &strided);
    int result = strided_open(&strided, visit, false, failure);
    if (result == 0)
        result = mpi_respond(visit, &side, answer, failure);
    strided_close(&strided);
    return result;
}

#endif
