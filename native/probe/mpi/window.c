#include "probe/mpi/window.h"

int window_open(const struct visit *visit, void *memory, MPI_Win *window, struct failure *failure) {
    const struct mpi_link *link = visit->link;
    const int code = MPI_Win_create(memory, memory == NULL ? 0 : (MPI_Aint)visit->size, 1, MPI_INFO_NULL,
                                    link->comm, window);
    if (code == MPI_SUCCESS)
        MPI_Win_set_errhandler(*window, MPI_ERRORS_RETURN);
    return code == MPI_SUCCESS ? 0 : mpi_failed(link, code, failure);
}

int window_close(const struct visit *visit, MPI_Win *window, struct failure *failure) {
    const struct mpi_link *link = visit->link;
    int code = MPI_Barrier(link->comm);
    if (code == MPI_SUCCESS)
        code = MPI_Win_free(window);
    return code == MPI_SUCCESS ? 0 : mpi_failed(link, code, failure);
}

int window_respond(const struct visit *visit, void *memory, struct failure *failure) {
    MPI_Win window = MPI_WIN_NULL;
    if (window_open(visit, memory, &window, failure) != 0)
        return -1;
    return window_close(visit, &window, failure);
}
