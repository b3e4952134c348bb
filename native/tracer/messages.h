/* What messages and what completes them share. */
#ifndef WULF_TRACER_MESSAGES_H
#define WULF_TRACER_MESSAGES_H

#include <mpi.h>
#include <stdint.h>

#include "trace/format.h"

static inline int32_t peer_of(int rank) {
    return rank == MPI_ANY_SOURCE ? TRACE_ANY : rank < 0 ? TRACE_NOBODY : rank;
}

static inline int32_t tag_of(int tag) { return tag == MPI_ANY_TAG ? TRACE_ANY : tag; }

/* Bytes that a status tells of. */
uint64_t bytes_received(const MPI_Status *status);

/* Where the status of a call goes: the program's, or ours where it wants none. */
#define OWN_STATUS                                                                                           \
    MPI_Status own_status;                                                                                   \
    if (status == MPI_STATUS_IGNORE)                                                                         \
    status = &own_status

#endif
