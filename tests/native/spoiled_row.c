/* Between a program and its MPI library (LD_PRELOAD): the first number of what
 * rank 0 sends and receives at once is not what it was given. */
#include <mpi.h>

int MPI_Sendrecv(const void *message, int count, MPI_Datatype type, int to, int tag, void *place, int there,
                 MPI_Datatype type_there, int from, int tag_there, MPI_Comm comm, MPI_Status *status) {
    int rank = 0;
    PMPI_Comm_rank(comm, &rank);
    if (rank == 0 && type == MPI_DOUBLE)
        *(double *)message += 0.01;
    return PMPI_Sendrecv(message, count, type, to, tag, place, there, type_there, from, tag_there, comm,
                         status);
}
