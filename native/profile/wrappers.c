/* The calls of C programs that move data or wait for it, each timed around the library's own: point to point,
 * persistent (timed, not counted), all collectives, matched probes, one-sided. Not there: those for files,
 * and the atomic and request-based ones of one-sided memory. */
#include "profile/profile.h"

#define EXPORT __attribute__((visibility("default")))

/* A call that is timed, and after it what else is counted. */
#define WRAP(name, kind, declaration, arguments, counted)                                                    \
    EXPORT int MPI_##name declaration;                                                                       \
    EXPORT int MPI_##name declaration {                                                                      \
        const uint64_t entered = profile_enter();                                                            \
        const int code = PMPI_##name arguments;                                                              \
        profile_leave(entered, kind);                                                                        \
        counted;                                                                                             \
        return code;                                                                                         \
    }

#define NOTHING (void)0
#define SENT                                                                                                 \
    (peer == MPI_PROC_NULL ? NOTHING : (profile_moved(KIND_POINT, count, type), profile_partner(peer, comm)))
#define OWN_PART profile_moved(KIND_COLLECTIVE, count, type)
/* IN_PLACE gives no count of what is sent: that of what is received stands for it. */
#define TO_ALL                                                                                               \
    profile_to_all(data == MPI_IN_PLACE ? receive_count : count, data == MPI_IN_PLACE ? receive_type : type, \
                   comm)
#define TO_EACH                                                                                              \
    profile_to_each(data == MPI_IN_PLACE ? receive_counts : counts,                                          \
                    data == MPI_IN_PLACE ? receive_type : type, comm)

#define SEND(name)                                                                                           \
    WRAP(name, KIND_POINT,                                                                                   \
         (const void *data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm),                 \
         (data, count, type, peer, tag, comm), SENT)
#define ISEND(name)                                                                                          \
    WRAP(name, KIND_POINT,                                                                                   \
         (const void *data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,                  \
          MPI_Request *request),                                                                             \
         (data, count, type, peer, tag, comm, request), SENT)

SEND(Send)
SEND(Bsend)
SEND(Ssend)
SEND(Rsend)
ISEND(Isend)
ISEND(Ibsend)
ISEND(Issend)
ISEND(Irsend)
WRAP(Recv, KIND_POINT,
     (void *data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Status *status),
     (data, count, type, peer, tag, comm, status), NOTHING)
WRAP(Irecv, KIND_POINT,
     (void *data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request *request),
     (data, count, type, peer, tag, comm, request), NOTHING)
WRAP(Sendrecv, KIND_POINT,
     (const void *data, int count, MPI_Datatype type, int peer, int tag, void *received, int receive_count,
      MPI_Datatype receive_type, int source, int receive_tag, MPI_Comm comm, MPI_Status *status),
     (data, count, type, peer, tag, received, receive_count, receive_type, source, receive_tag, comm, status),
     SENT)
WRAP(Sendrecv_replace, KIND_POINT,
     (void *data, int count, MPI_Datatype type, int peer, int tag, int source, int receive_tag, MPI_Comm comm,
      MPI_Status *status),
     (data, count, type, peer, tag, source, receive_tag, comm, status), SENT)
WRAP(Probe, KIND_WAIT, (int peer, int tag, MPI_Comm comm, MPI_Status *status), (peer, tag, comm, status),
     NOTHING)
WRAP(Iprobe, KIND_WAIT, (int peer, int tag, MPI_Comm comm, int *flag, MPI_Status *status),
     (peer, tag, comm, flag, status), NOTHING)
WRAP(Wait, KIND_WAIT, (MPI_Request * request, MPI_Status *status), (request, status), NOTHING)
WRAP(Waitall, KIND_WAIT, (int count, MPI_Request *requests, MPI_Status *statuses),
     (count, requests, statuses), NOTHING)
WRAP(Waitany, KIND_WAIT, (int count, MPI_Request *requests, int *index, MPI_Status *status),
     (count, requests, index, status), NOTHING)
WRAP(Waitsome, KIND_WAIT, (int count, MPI_Request *requests, int *done, int *indices, MPI_Status *statuses),
     (count, requests, done, indices, statuses), NOTHING)
WRAP(Test, KIND_WAIT, (MPI_Request * request, int *flag, MPI_Status *status), (request, flag, status),
     NOTHING)
WRAP(Testall, KIND_WAIT, (int count, MPI_Request *requests, int *flag, MPI_Status *statuses),
     (count, requests, flag, statuses), NOTHING)
WRAP(Testany, KIND_WAIT, (int count, MPI_Request *requests, int *index, int *flag, MPI_Status *status),
     (count, requests, index, flag, status), NOTHING)
WRAP(Testsome, KIND_WAIT, (int count, MPI_Request *requests, int *done, int *indices, MPI_Status *statuses),
     (count, requests, done, indices, statuses), NOTHING)
WRAP(Start, KIND_POINT, (MPI_Request * request), (request), profile_started(1))
WRAP(Startall, KIND_POINT, (int count, MPI_Request *requests), (count, requests), profile_started(count))

WRAP(Barrier, KIND_COLLECTIVE, (MPI_Comm comm), (comm), NOTHING)
WRAP(Bcast, KIND_COLLECTIVE, (void *data, int count, MPI_Datatype type, int root, MPI_Comm comm),
     (data, count, type, root, comm), OWN_PART)
WRAP(Reduce, KIND_COLLECTIVE,
     (const void *data, void *result, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),
     (data, result, count, type, op, root, comm), OWN_PART)
#define REDUCTION(name)                                                                                      \
    WRAP(name, KIND_COLLECTIVE,                                                                              \
         (const void *data, void *result, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),           \
         (data, result, count, type, op, comm), OWN_PART)
REDUCTION(Allreduce)
REDUCTION(Scan)
REDUCTION(Exscan)
REDUCTION(Reduce_scatter_block)
WRAP(Reduce_scatter, KIND_COLLECTIVE,
     (const void *data, void *result, const int *counts, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
     (data, result, counts, type, op, comm), profile_to_each(counts, type, comm))
#define GATHERED                                                                                             \
    profile_moved(KIND_COLLECTIVE, data == MPI_IN_PLACE ? receive_count : count,                             \
                  data == MPI_IN_PLACE ? receive_type : type)
#define ROOTED(name)                                                                                         \
    WRAP(name, KIND_COLLECTIVE,                                                                              \
         (const void *data, int count, MPI_Datatype type, void *received, int receive_count,                 \
          MPI_Datatype receive_type, int root, MPI_Comm comm),                                               \
         (data, count, type, received, receive_count, receive_type, root, comm), GATHERED)
ROOTED(Gather)
WRAP(Scatter, KIND_COLLECTIVE,
     (const void *data, int count, MPI_Datatype type, void *received, int receive_count,
      MPI_Datatype receive_type, int root, MPI_Comm comm),
     (data, count, type, received, receive_count, receive_type, root, comm),
     profile_moved(KIND_COLLECTIVE, received == MPI_IN_PLACE ? count : receive_count,
                   received == MPI_IN_PLACE ? type : receive_type))
WRAP(Gatherv, KIND_COLLECTIVE,
     (const void *data, int count, MPI_Datatype type, void *received, const int *receive_counts,
      const int *places, MPI_Datatype receive_type, int root, MPI_Comm comm),
     (data, count, type, received, receive_counts, places, receive_type, root, comm),
     profile_moved(KIND_COLLECTIVE, data == MPI_IN_PLACE ? 0 : count,
                   data == MPI_IN_PLACE ? receive_type : type))
WRAP(Scatterv, KIND_COLLECTIVE,
     (const void *data, const int *counts, const int *places, MPI_Datatype type, void *received,
      int receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm),
     (data, counts, places, type, received, receive_count, receive_type, root, comm),
     profile_moved(KIND_COLLECTIVE, received == MPI_IN_PLACE ? 0 : receive_count,
                   received == MPI_IN_PLACE ? type : receive_type))
WRAP(Allgather, KIND_COLLECTIVE,
     (const void *data, int count, MPI_Datatype type, void *received, int receive_count,
      MPI_Datatype receive_type, MPI_Comm comm),
     (data, count, type, received, receive_count, receive_type, comm), GATHERED)
WRAP(Allgatherv, KIND_COLLECTIVE,
     (const void *data, int count, MPI_Datatype type, void *received, const int *receive_counts,
      const int *places, MPI_Datatype receive_type, MPI_Comm comm),
     (data, count, type, received, receive_counts, places, receive_type, comm),
     profile_moved(KIND_COLLECTIVE, data == MPI_IN_PLACE ? 0 : count,
                   data == MPI_IN_PLACE ? receive_type : type))
WRAP(Alltoall, KIND_COLLECTIVE,
     (const void *data, int count, MPI_Datatype type, void *received, int receive_count,
      MPI_Datatype receive_type, MPI_Comm comm),
     (data, count, type, received, receive_count, receive_type, comm), TO_ALL)
WRAP(Ialltoall, KIND_COLLECTIVE,
     (const void *data, int count, MPI_Datatype type, void *received, int receive_count,
      MPI_Datatype receive_type, MPI_Comm comm, MPI_Request *request),
     (data, count, type, received, receive_count, receive_type, comm, request), TO_ALL)
WRAP(Iallgather, KIND_COLLECTIVE,
     (const void *data, int count, MPI_Datatype type, void *received, int receive_count,
      MPI_Datatype receive_type, MPI_Comm comm, MPI_Request *request),
     (data, count, type, received, receive_count, receive_type, comm, request), GATHERED)
WRAP(Alltoallv, KIND_COLLECTIVE,
     (const void *data, const int *counts, const int *places, MPI_Datatype type, void *received,
      const int *receive_counts, const int *receive_places, MPI_Datatype receive_type, MPI_Comm comm),
     (data, counts, places, type, received, receive_counts, receive_places, receive_type, comm), TO_EACH)
WRAP(Ialltoallv, KIND_COLLECTIVE,
     (const void *data, const int *counts, const int *places, MPI_Datatype type, void *received,
      const int *receive_counts, const int *receive_places, MPI_Datatype receive_type, MPI_Comm comm,
      MPI_Request *request),
     (data, counts, places, type, received, receive_counts, receive_places, receive_type, comm, request),
     TO_EACH)
WRAP(Alltoallw, KIND_COLLECTIVE,
     (const void *data, const int *counts, const int *places, const MPI_Datatype *types, void *received,
      const int *receive_counts, const int *receive_places, const MPI_Datatype *receive_types, MPI_Comm comm),
     (data, counts, places, types, received, receive_counts, receive_places, receive_types, comm),
     profile_to_each(data == MPI_IN_PLACE ? receive_counts : counts,
                     data == MPI_IN_PLACE ? receive_types[0] : types[0], comm))
WRAP(Ibarrier, KIND_COLLECTIVE, (MPI_Comm comm, MPI_Request *request), (comm, request), NOTHING)
WRAP(Ibcast, KIND_COLLECTIVE,
     (void *data, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *request),
     (data, count, type, root, comm, request), OWN_PART)
#define IREDUCTION(name)                                                                                     \
    WRAP(name, KIND_COLLECTIVE,                                                                              \
         (const void *data, void *result, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,            \
          MPI_Request *request),                                                                             \
         (data, result, count, type, op, comm, request), OWN_PART)
IREDUCTION(Iallreduce)
IREDUCTION(Iscan)
IREDUCTION(Iexscan)
IREDUCTION(Ireduce_scatter_block)
WRAP(Ireduce, KIND_COLLECTIVE,
     (const void *data, void *result, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm,
      MPI_Request *request),
     (data, result, count, type, op, root, comm, request), OWN_PART)
WRAP(Igather, KIND_COLLECTIVE,
     (const void *data, int count, MPI_Datatype type, void *received, int receive_count,
      MPI_Datatype receive_type, int root, MPI_Comm comm, MPI_Request *request),
     (data, count, type, received, receive_count, receive_type, root, comm, request), GATHERED)
WRAP(Iscatter, KIND_COLLECTIVE,
     (const void *data, int count, MPI_Datatype type, void *received, int receive_count,
      MPI_Datatype receive_type, int root, MPI_Comm comm, MPI_Request *request),
     (data, count, type, received, receive_count, receive_type, root, comm, request),
     profile_moved(KIND_COLLECTIVE, received == MPI_IN_PLACE ? count : receive_count,
                   received == MPI_IN_PLACE ? type : receive_type))
/* A neighbourhood has fewer partners than the communicator: one part stands for them. */
WRAP(Neighbor_allgather, KIND_COLLECTIVE,
     (const void *data, int count, MPI_Datatype type, void *received, int receive_count,
      MPI_Datatype receive_type, MPI_Comm comm),
     (data, count, type, received, receive_count, receive_type, comm), OWN_PART)
WRAP(Neighbor_alltoall, KIND_COLLECTIVE,
     (const void *data, int count, MPI_Datatype type, void *received, int receive_count,
      MPI_Datatype receive_type, MPI_Comm comm),
     (data, count, type, received, receive_count, receive_type, comm), OWN_PART)
WRAP(Neighbor_alltoallv, KIND_COLLECTIVE,
     (const void *data, const int *counts, const int *places, MPI_Datatype type, void *received,
      const int *receive_counts, const int *receive_places, MPI_Datatype receive_type, MPI_Comm comm),
     (data, counts, places, type, received, receive_counts, receive_places, receive_type, comm),
     profile_moved(KIND_COLLECTIVE, counts[0], type))

WRAP(Put, KIND_ONE_SIDED,
     (const void *data, int count, MPI_Datatype type, int peer, MPI_Aint at, int target_count,
      MPI_Datatype target_type, MPI_Win window),
     (data, count, type, peer, at, target_count, target_type, window),
     profile_moved(KIND_ONE_SIDED, count, type))
WRAP(Get, KIND_ONE_SIDED,
     (void *data, int count, MPI_Datatype type, int peer, MPI_Aint at, int target_count,
      MPI_Datatype target_type, MPI_Win window),
     (data, count, type, peer, at, target_count, target_type, window),
     profile_moved(KIND_ONE_SIDED, count, type))
WRAP(Accumulate, KIND_ONE_SIDED,
     (const void *data, int count, MPI_Datatype type, int peer, MPI_Aint at, int target_count,
      MPI_Datatype target_type, MPI_Op op, MPI_Win window),
     (data, count, type, peer, at, target_count, target_type, op, window),
     profile_moved(KIND_ONE_SIDED, count, type))
WRAP(Win_fence, KIND_ONE_SIDED, (int assertion, MPI_Win window), (assertion, window), NOTHING)
WRAP(Win_lock, KIND_ONE_SIDED, (int type, int peer, int assertion, MPI_Win window),
     (type, peer, assertion, window), NOTHING)
WRAP(Win_unlock, KIND_ONE_SIDED, (int peer, MPI_Win window), (peer, window), NOTHING)
WRAP(Win_flush, KIND_ONE_SIDED, (int peer, MPI_Win window), (peer, window), NOTHING)
WRAP(Win_lock_all, KIND_ONE_SIDED, (int assertion, MPI_Win window), (assertion, window), NOTHING)
WRAP(Win_unlock_all, KIND_ONE_SIDED, (MPI_Win window), (window), NOTHING)
WRAP(Win_flush_all, KIND_ONE_SIDED, (MPI_Win window), (window), NOTHING)
WRAP(Win_post, KIND_ONE_SIDED, (MPI_Group group, int assertion, MPI_Win window), (group, assertion, window),
     NOTHING)
WRAP(Win_start, KIND_ONE_SIDED, (MPI_Group group, int assertion, MPI_Win window), (group, assertion, window),
     NOTHING)
WRAP(Win_complete, KIND_ONE_SIDED, (MPI_Win window), (window), NOTHING)
WRAP(Win_wait, KIND_ONE_SIDED, (MPI_Win window), (window), NOTHING)
WRAP(Mprobe, KIND_WAIT, (int peer, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status),
     (peer, tag, comm, message, status), NOTHING)
WRAP(Mrecv, KIND_POINT, (void *data, int count, MPI_Datatype type, MPI_Message *message, MPI_Status *status),
     (data, count, type, message, status), NOTHING)
WRAP(Imrecv, KIND_POINT,
     (void *data, int count, MPI_Datatype type, MPI_Message *message, MPI_Request *request),
     (data, count, type, message, request), NOTHING)
