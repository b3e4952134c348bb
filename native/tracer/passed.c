/* What a replay cannot follow, a line a call: counted and timed by its name, and marked where it begins. */
/* Libraries do not agree whether it takes a const: theirs gets another name. */
#define MPI_Pready_list MPI_Pready_list_of_theirs
#define PMPI_Pready_list PMPI_Pready_list_of_theirs
#include <mpi.h>
#undef MPI_Pready_list
#undef PMPI_Pready_list

#include "tracer/communicators.h"
#include "tracer/types.h"
#include "tracer/wrap.h"

#define COUNT int
#define PLACE int
#define SIZED(name) name
#include "tracer/passed_sized.h"
#undef COUNT
#undef PLACE
#undef SIZED
#define COUNT MPI_Count
#define PLACE MPI_Aint
#define SIZED(name) name##_c
#include "tracer/passed_sized.h"

/* --- memory of other ranks ------------------------------------------------------------------------------ */

UNSOUND(Win_create_dynamic, (MPI_Info info, MPI_Comm comm, MPI_Win *win), (info, comm, win), TRACE_ONE_SIDED)
NAMED(Win_free, (MPI_Win * win), (win))
NAMED(Win_fence, (int assertion, MPI_Win win), (assertion, win))
NAMED(Win_start, (MPI_Group group, int assertion, MPI_Win win), (group, assertion, win))
NAMED(Win_complete, (MPI_Win win), (win))
NAMED(Win_post, (MPI_Group group, int assertion, MPI_Win win), (group, assertion, win))
NAMED(Win_wait, (MPI_Win win), (win))
NAMED(Win_test, (MPI_Win win, int *flag), (win, flag))
NAMED(Win_lock, (int kind, int rank, int assertion, MPI_Win win), (kind, rank, assertion, win))
NAMED(Win_unlock, (int rank, MPI_Win win), (rank, win))
NAMED(Win_lock_all, (int assertion, MPI_Win win), (assertion, win))
NAMED(Win_unlock_all, (MPI_Win win), (win))
NAMED(Win_flush, (int rank, MPI_Win win), (rank, win))
NAMED(Win_flush_all, (MPI_Win win), (win))
NAMED(Win_flush_local, (int rank, MPI_Win win), (rank, win))
NAMED(Win_flush_local_all, (MPI_Win win), (win))
NAMED(Win_sync, (MPI_Win win), (win))
NAMED(Fetch_and_op,
      (const void *data, void *to, MPI_Datatype type, int peer, MPI_Aint place, MPI_Op op, MPI_Win win),
      (data, to, type, peer, place, op, win))
NAMED(Compare_and_swap,
      (const void *data, const void *compared, void *to, MPI_Datatype type, int peer, MPI_Aint place,
       MPI_Win win),
      (data, compared, to, type, peer, place, win))

/* --- processes ------------------------------------------------------------------------------------------ */

UNSOUND(Comm_spawn,
        (const char *command, char **words, int most, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *to,
         int *codes),
        (command, words, most, info, root, comm, to, codes), TRACE_PROCESSES)
UNSOUND(Comm_spawn_multiple,
        (int count, char **commands, char ***words, const int *most, const MPI_Info *infos, int root,
         MPI_Comm comm, MPI_Comm *to, int *codes),
        (count, commands, words, most, infos, root, comm, to, codes), TRACE_PROCESSES)
UNSOUND(Comm_accept, (const char *port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *to),
        (port, info, root, comm, to), TRACE_PROCESSES)
UNSOUND(Comm_connect, (const char *port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *to),
        (port, info, root, comm, to), TRACE_PROCESSES)
UNSOUND(Comm_join, (int socket, MPI_Comm *to), (socket, to), TRACE_PROCESSES)
NAMED(Open_port, (MPI_Info info, char *port), (info, port))
NAMED(Close_port, (const char *port), (port))
NAMED(Publish_name, (const char *service, MPI_Info info, const char *port), (service, info, port))
NAMED(Unpublish_name, (const char *service, MPI_Info info, const char *port), (service, info, port))
NAMED(Lookup_name, (const char *service, MPI_Info info, char *port), (service, info, port))

/* --- files ---------------------------------------------------------------------------------------------- */

UNSOUND(File_open, (MPI_Comm comm, const char *name, int mode, MPI_Info info, MPI_File *file),
        (comm, name, mode, info, file), TRACE_FILES)
NAMED(File_close, (MPI_File * file), (file))
NAMED(File_set_size, (MPI_File file, MPI_Offset size), (file, size))
NAMED(File_preallocate, (MPI_File file, MPI_Offset size), (file, size))
NAMED(File_set_info, (MPI_File file, MPI_Info info), (file, info))
NAMED(File_set_atomicity, (MPI_File file, int flag), (file, flag))
NAMED(File_set_view,
      (MPI_File file, MPI_Offset place, MPI_Datatype type, MPI_Datatype pattern, const char *form,
       MPI_Info info),
      (file, place, type, pattern, form, info))
NAMED(File_sync, (MPI_File file), (file))
NAMED(File_seek_shared, (MPI_File file, MPI_Offset place, int from), (file, place, from))

#define FILE_END(name, data_type)                                                                            \
    NAMED(File_##name##_end, (MPI_File file, data_type data, MPI_Status * status), (file, data, status))
FILE_END(read_all, void *)
FILE_END(read_at_all, void *)
FILE_END(read_ordered, void *)
FILE_END(write_all, const void *)
FILE_END(write_at_all, const void *)
FILE_END(write_ordered, const void *)

/* --- requests that complete when the program says so, and buffers that are waited for ---------------------
 */

UNSOUND(Grequest_start,
        (MPI_Grequest_query_function * query, MPI_Grequest_free_function *free_own,
         MPI_Grequest_cancel_function *cancel, void *state, MPI_Request *request),
        (query, free_own, cancel, state, request), TRACE_PASSED)
NAMED(Buffer_detach, (void *data, int *size), (data, size))
NAMED(Buffer_detach_c, (void *data, MPI_Count *size), (data, size))
NAMED(Comm_detach_buffer, (MPI_Comm comm, void *data, int *size), (comm, data, size))
NAMED(Comm_detach_buffer_c, (MPI_Comm comm, void *data, MPI_Count *size), (comm, data, size))
NAMED(Buffer_flush, (void), ())
NAMED(Comm_flush_buffer, (MPI_Comm comm), (comm))
NAMED(Buffer_iflush, (MPI_Request * request), (request))
NAMED(Comm_iflush_buffer, (MPI_Comm comm, MPI_Request *request), (comm, request))

/* --- what MPI 4 has in addition ------------------------------------------------------------------------- */

UNSOUND(Barrier_init, (MPI_Comm comm, MPI_Info info, MPI_Request *request), (comm, info, request),
        TRACE_PASSED)
#define PARTITIONED(name, data_type)                                                                         \
    UNSOUND(name,                                                                                            \
            (data_type data, int parts, MPI_Count count, MPI_Datatype type, int peer, int tag,               \
             MPI_Comm comm, MPI_Info info, MPI_Request *request),                                            \
            (data, parts, count, type, peer, tag, comm, info, request), TRACE_PASSED)
PARTITIONED(Psend_init, const void *)
PARTITIONED(Precv_init, void *)
NAMED(Pready, (int part, MPI_Request request), (part, request))
NAMED(Pready_range, (int low, int high, MPI_Request request), (low, high, request))
NAMED(Pready_list, (int count, const int *parts, MPI_Request request), (count, parts, request))
NAMED(Parrived, (MPI_Request request, int part, int *flag), (request, part, flag))
UNSOUND(Comm_create_from_group,
        (MPI_Group group, const char *tag, MPI_Info info, MPI_Errhandler handler, MPI_Comm *to),
        (group, tag, info, handler, to), TRACE_PASSED)
UNSOUND(Intercomm_create_from_groups,
        (MPI_Group group, int leader, MPI_Group others, int remote, const char *tag, MPI_Info info,
         MPI_Errhandler handler, MPI_Comm *to),
        (group, leader, others, remote, tag, info, handler, to), TRACE_INTER)
