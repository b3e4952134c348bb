/* Between a program and its MPI library (LD_PRELOAD): what the last rank reads (WULF_FAILS=read) or writes
 * (write) of a file fails: as on a file system without any room.
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static int given(int code, const char *call) {
    const char *fails = getenv("WULF_FAILS");
    int rank = 0;
    int ranks = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int fail = fails != NULL && strncmp(call, fails, strlen(fails)) == 0 && rank == ranks - 1;
    return code == MPI_SUCCESS && fail ? MPI_ERR_NO_SPACE : code;
}

#define AT(CALL, BUFFER)                                                                                     \
    int MPI_File_##CALL(MPI_File file, MPI_Offset place, BUFFER message, int count, MPI_Datatype type,       \
                        MPI_Status *status) {                                                                \
        return given(PMPI_File_##CALL(file, place, message, count, type, status), #CALL);                    \
    }
AT(write_at, const void *)
AT(write_at_all, const void *)
AT(read_at, void *)
AT(read_at_all, void *)
