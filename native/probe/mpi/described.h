/* Persistent collectives: described once, started again and again (MPI-4.0, section 6.13). Libraries have
 * them by that standard, or before it as an extension. */
#ifndef WULF_DESCRIBED_H
#define WULF_DESCRIBED_H

#include <mpi.h>

#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#endif

#if MPI_VERSION >= 4 || (defined(OPEN_MPI) && OMPI_MAJOR_VERSION >= 5)
#define MPI_DESCRIPTION(CALL) MPI_##CALL##_init
#elif defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
#define MPI_DESCRIPTION(CALL) MPIX_##CALL##_init
#endif

#ifdef MPI_DESCRIPTION
/* Define `describe` for a collective: its call, and what that takes up to the communicator. */
#define DESCRIBE(CALL, ...)                                                                                  \
    static int describe(const struct part *part, MPI_Request *request) {                                     \
        return MPI_DESCRIPTION(CALL)(__VA_ARGS__, MPI_INFO_NULL, request);                                   \
    }
#define DESCRIBED describe
#else
#define DESCRIBE(CALL, ...)
#define DESCRIBED NULL
#endif

#endif
