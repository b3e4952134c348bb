/* Every rank writes and reads a file of its own. */
#include "probe/mpi/files.h"

WULF_FILE_OPERATION(WRITE, "write_own", FILES_OWN, false, false,
                    "MPI_File_write_at: every rank writes a file of its own; it may stay in memory")
WULF_FILE_OPERATION(
    WRITE_SYNC, "write_own_sync", FILES_OWN, false, true,
    "MPI_File_write_at and MPI_File_sync: every rank writes a file of its own, until it is on the disk")
WULF_FILE_OPERATION(READ, "read_own", FILES_OWN, true, false,
                    "MPI_File_read_at: every rank reads a file of its own; from memory, where it is there")
WULF_FILE_OPERATION(
    READ_DROPPED, "read_own_dropped", FILES_OWN, true, true,
    "MPI_File_read_at: every rank reads a file of its own, which its node was asked to forget")
