/* The other ranks. */
#ifndef WULF_MPI_LINK_H
#define WULF_MPI_LINK_H

#include <mpi.h>

#include "core/failure.h"
#include "probe/command.h"

enum { TAG_DATA = 1, TAG_CONTROL = 2 };

struct mpi_link {
    MPI_Comm comm;
    int peer, last_peer; /* the first and the last of the ranks that this one talks to */
    const char *peer_name;
    const char *directory; /* of files; NULL for none */
};

/* Note what the library says of a call that failed; returns -1. */
int mpi_failed(const struct mpi_link *link, int code, struct failure *failure);

/* Commands to and from the other ranks: a command goes to all of them, and an answer comes from each. */
struct channel mpi_channel(struct mpi_link *link);

#endif
