/* Every rank writes and reads its pieces of one file. */
#include "probe/mpi/files.h"

WULF_FILE_OPERATION(WRITE, "write_shared", FILES_SHARED, false, false,
                    "MPI_File_write_at: every rank writes its pieces of one file; it may stay in memory")
WULF_FILE_OPERATION(
    WRITE_SYNC, "write_shared_sync", FILES_SHARED, false, true,
    "MPI_File_write_at and MPI_File_sync: every rank writes its pieces of one file, until it is on the disk")
WULF_FILE_OPERATION(READ, "read_shared", FILES_SHARED, true, false,
                    "MPI_File_read_at: every rank reads its pieces of one file; that of the next rank; from "
                    "memory, where it is there")
WULF_FILE_OPERATION(READ_DROPPED, "read_shared_dropped", FILES_SHARED, true, true,
                    "MPI_File_read_at: every rank reads its pieces of one file; that of the next rank, which "
                    "its node was asked to forget")
