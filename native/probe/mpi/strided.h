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

#endif
