/* Every rank writes and reads its piece of one file, in one collective call. */
#include "probe/mpi/files.h"

WULF_FILE_OPERATION(WRITE, "write_collective", FILES_COLLECTIVE, false, false,
                    "MPI_File_write_at_all: every rank writes its piece of one file, in one collective call; "
                    "it may stay in memory")
WULF_FILE_OPERATION(WRITE_SYNC, "write_collective_sync", FILES_COLLECTIVE, false, true,
                    "MPI_File_write_at_all and MPI_File_sync: every rank writes its piece of one file, in "
                    "one collective call, until it is on the disk")
WULF_FILE_OPERATION(READ, "read_collective", FILES_COLLECTIVE, true, false,
                    "MPI_File_read_at_all: every rank reads its piece of one file, in one collective call; "
                    "that of the next rank; from memory, where it is there")
WULF_FILE_OPERATION(READ_DROPPED, "read_collective_dropped", FILES_COLLECTIVE, true, true,
                    "MPI_File_read_at_all: every rank reads its piece of one file, in one collective call; "
                    "that of the next rank, which its node was asked to forget")
