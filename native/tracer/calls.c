/* The calls of MPI 3.1 that move data, wait for it or make communicators, a line or two each: what the
 * program declares and gives, and what is recorded of it. The preprocessor makes a wrapper of every line. */
#include <mpi.h>
#include <stdlib.h>

#include "tracer/communicators.h"
#include "tracer/requests.h"
#include "tracer/tracer.h"

#define EXPORT __attribute__((visibility("default")))
#define STRIP(...) __VA_ARGS__

#define WRAP_AFTER(name, declared, given, before, recorded)                                                  \
    EXPORT int MPI_##name(STRIP declared);                                                                   \
    EXPORT int MPI_##name(STRIP declared) {                                                                  \
        before;                                                                                              \
        const uint64_t entered = tracer_enter();                                                             \
        const int code = PMPI_##name(STRIP given);                                                           \
        if (tracer_left(entered, code)) {                                                                    \
            recorded;                                                                                        \
            tracer_done();                                                                                   \
        }                                                                                                    \
        return code;                                                                                         \
    }
#define WRAP(name, declared, given, recorded) WRAP_AFTER(name, declared, given, (void)0, recorded)

/* --- what is recorded ---------------------------------------------------------------------------------- */

static uint64_t bytes_of(int count, MPI_Datatype type) {
    int size = 0;
    if (count <= 0 || PMPI_Type_size(type, &size) != MPI_SUCCESS || size < 0)
        return 0;
    return (uint64_t)count * (uint64_t)size;
}

static int32_t peer_of(int rank) {
    return rank == MPI_ANY_SOURCE ? TRACE_ANY : rank < 0 ? TRACE_NOBODY : rank;
}

static int32_t tag_of(int tag) { return tag == MPI_ANY_TAG ? TRACE_ANY : tag; }

static bool is_wild(int peer, int tag) { return peer == MPI_ANY_SOURCE || tag == MPI_ANY_TAG; }

static uint64_t received(const MPI_Status *status) {
    int count = 0;
    PMPI_Get_count(status, MPI_BYTE, &count);
    return count > 0 ? (uint64_t)count : 0;
}

static struct trace_record message(enum trace_kind kind, int peer, int tag, MPI_Comm comm, uint64_t bytes) {
    return (struct trace_record){.kind = (uint8_t)kind,
                                 .comm = communicator_number(comm),
                                 .peer = peer_of(peer),
                                 .tag = tag_of(tag),
                                 .bytes = bytes};
}

static void sent(enum trace_kind kind, int peer, int tag, MPI_Comm comm, uint64_t bytes) {
    tracer_add(message(kind, peer, tag, comm, bytes));
}

static void got(enum trace_kind kind, int peer, int tag, MPI_Comm comm, const MPI_Status *status) {
    struct trace_record record = message(kind, status->MPI_SOURCE, status->MPI_TAG, comm, received(status));
    if (peer == MPI_PROC_NULL)
        record.peer = TRACE_NOBODY;
    if (is_wild(peer, tag))
        record.flags |= TRACE_WILD;
    tracer_add(record);
}

static void begun(struct trace_record record, MPI_Request handle, struct request like) {
    like.comm = record.comm;
    record.request = request_add(handle, like);
    if (record.request == 0)
        tracer_mark(TRACE_PASSED); /* no memory */
    tracer_add(record);
}

static void begun_send(enum trace_kind kind, int peer, int tag, MPI_Comm comm, uint64_t bytes,
                       MPI_Request handle, bool is_persistent) {
    begun(message(kind, peer, tag, comm, bytes), handle, (struct request){.is_persistent = is_persistent});
}

static void begun_receive(enum trace_kind kind, int peer, int tag, MPI_Comm comm, uint64_t bytes,
                          MPI_Request handle, bool is_persistent) {
    struct trace_record record = message(kind, peer, tag, comm, bytes);
    if (is_wild(peer, tag))
        record.flags |= TRACE_WILD;
    begun(record, handle, (struct request){.is_receive = true, .is_persistent = is_persistent});
}

static void exchanged(int peer, int tag, uint64_t bytes, int source, int receive_tag, MPI_Comm comm,
                      const MPI_Status *status) {
    struct trace_record record = message(TRACE_SENDRECV, peer, tag, comm, bytes);
    record.flags |= TRACE_FIRST;
    tracer_add(record);
    record = message(TRACE_RECV_PART, status->MPI_SOURCE, status->MPI_TAG, comm, received(status));
    if (source == MPI_PROC_NULL)
        record.peer = TRACE_NOBODY;
    record.flags |= TRACE_NEXT;
    if (is_wild(source, receive_tag))
        record.flags |= TRACE_WILD;
    tracer_add(record);
}

static void started(int count, MPI_Request *requests) {
    for (int one = 0; one < count; one++) {
        const uint32_t number = request_find(requests[one]);
        if (number == 0)
            tracer_mark(TRACE_PASSED);
        else
            tracer_add((struct trace_record){.kind = TRACE_START,
                                             .flags = one > 0 ? TRACE_NEXT : 0,
                                             .comm = request_get(number)->comm,
                                             .peer = TRACE_NOBODY,
                                             .request = number});
    }
}

static void freed(MPI_Request handle) {
    const uint32_t number = request_find(handle);
    if (number == 0)
        return;
    tracer_add((struct trace_record){
        .kind = TRACE_FREE, .comm = request_get(number)->comm, .peer = TRACE_NOBODY, .request = number});
    request_remove(number);
}

static void cancelled(MPI_Request handle) {
    tracer_add(
        (struct trace_record){.kind = TRACE_CANCEL, .peer = TRACE_NOBODY, .request = request_find(handle)});
    tracer_mark(TRACE_CANCELLED);
}

/* --- requests that are complete: handles as they were before the call, which sets them to none ---------- */

static _Thread_local struct {
    MPI_Request *handles;
    MPI_Status *statuses;
    int room;
} scratch;

static bool have_scratch(int count) {
    if (count <= scratch.room)
        return true;
    MPI_Request *handles = realloc(scratch.handles, (size_t)count * sizeof *handles);
    if (handles != NULL)
        scratch.handles = handles;
    MPI_Status *statuses = realloc(scratch.statuses, (size_t)count * sizeof *statuses);
    if (statuses != NULL)
        scratch.statuses = statuses;
    if (handles == NULL || statuses == NULL) {
        tracer_mark(TRACE_PASSED);
        return false;
    }
    scratch.room = count;
    return true;
}

static void keep(int count, const MPI_Request *requests) {
    if (have_scratch(count))
        for (int one = 0; one < count; one++)
            scratch.handles[one] = requests[one];
}

/* Where the statuses of a call go: the program's, or ours where it wants none. */
static MPI_Status *statuses_of(int count, MPI_Status *given) {
    return given != MPI_STATUSES_IGNORE || !have_scratch(count) ? given : scratch.statuses;
}

/* Returns how many records were written. */
static int completed(enum trace_kind kind, MPI_Request handle, const MPI_Status *status, int before) {
    const uint32_t number = request_find(handle);
    if (number == 0)
        return before;
    const struct request *request = request_get(number);
    struct trace_record record = {.kind = (uint8_t)kind,
                                  .flags = before > 0 ? TRACE_NEXT : 0,
                                  .comm = request->comm,
                                  .peer = TRACE_NOBODY,
                                  .request = number};
    if (request->is_receive && status != MPI_STATUS_IGNORE) {
        record.peer = peer_of(status->MPI_SOURCE);
        record.tag = tag_of(status->MPI_TAG);
        record.bytes = received(status);
    }
    tracer_add(record);
    if (!request->is_persistent)
        request_remove(number);
    return before + 1;
}

/* All of them; where none is known it is a look in vain. */
static void completed_all(enum trace_kind kind, int count, const MPI_Status *statuses) {
    int records = 0;
    for (int one = 0; one < count && one < scratch.room; one++)
        records = completed(kind, scratch.handles[one],
                            statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[one], records);
    if (records == 0)
        tracer_vain();
}

static void completed_some(enum trace_kind kind, int done, const int *indices, const MPI_Status *statuses) {
    int records = 0;
    for (int one = 0; one < done; one++)
        if (indices[one] < scratch.room)
            records =
                completed(kind, scratch.handles[indices[one]],
                          statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[one], records);
    if (records == 0)
        tracer_vain();
}

static void completed_one(enum trace_kind kind, int index, const MPI_Status *status) {
    if (index == MPI_UNDEFINED || index >= scratch.room ||
        completed(kind, scratch.handles[index], status, 0) == 0)
        tracer_vain();
}

/* --- messages that were matched before they are received ------------------------------------------------ */

static struct matched {
    MPI_Message handle;
    MPI_Comm comm;
    int source, tag;
} * matched;
static int matched_count, matched_room;

static void probed(int peer, int tag, MPI_Comm comm, const MPI_Status *status) {
    got(TRACE_PROBE, peer, tag, comm, status);
}

static void probed_matched(int peer, int tag, MPI_Comm comm, MPI_Message handle, const MPI_Status *status) {
    probed(peer, tag, comm, status);
    if (matched_count == matched_room) {
        struct matched *more = realloc(matched, (size_t)(matched_room + 16) * sizeof *more);
        if (more == NULL) {
            tracer_mark(TRACE_PASSED);
            return;
        }
        matched = more;
        matched_room += 16;
    }
    matched[matched_count++] = (struct matched){handle, comm, status->MPI_SOURCE, status->MPI_TAG};
}

static struct matched take_matched(MPI_Message handle) {
    for (int one = 0; one < matched_count; one++)
        if (matched[one].handle == handle) {
            const struct matched found = matched[one];
            matched[one] = matched[--matched_count];
            return found;
        }
    return (struct matched){handle, MPI_COMM_WORLD, MPI_PROC_NULL, 0}; /* MPI_MESSAGE_NO_PROC */
}

static void got_matched(MPI_Message handle, const MPI_Status *status) {
    const struct matched from = take_matched(handle);
    got(TRACE_MRECV, from.source, from.tag, from.comm, status);
}

static void begun_matched(MPI_Message handle, uint64_t bytes, MPI_Request request) {
    const struct matched from = take_matched(handle);
    begun_receive(TRACE_IMRECV, from.source, from.tag, from.comm, bytes, request, false);
}

/* --- collectives --------------------------------------------------------------------------------------- */

struct part {
    enum trace_kind kind;
    MPI_Comm comm;
    int root;
    uint64_t bytes;
    bool in_place;
    /* Bytes of each rank or neighbour: counts with one type, or with a type each; NULL: no sizes. */
    const int *counts;
    const MPI_Datatype *types;
    MPI_Datatype type;
    MPI_Request *request; /* of one that is only begun */
};

static int sizes_of(const struct part *part) {
    int count = 0;
    if (part->kind >= TRACE_NEIGHBOR_ALLGATHER && part->kind <= TRACE_NEIGHBOR_ALLTOALLW)
        return communicator_targets(part->comm);
    PMPI_Comm_size(part->comm, &count);
    return count;
}

static void all_together(struct part part) {
    struct trace_record record = message(part.kind, MPI_PROC_NULL, 0, part.comm, part.bytes);
    record.peer = part.root < 0 ? TRACE_NOBODY : part.root;
    if (part.in_place)
        record.flags |= TRACE_IN_PLACE;
    if (part.request != NULL) {
        record.flags |= TRACE_NONBLOCKING;
        record.request = request_add(*part.request, (struct request){.comm = record.comm});
        if (record.request == 0)
            tracer_mark(TRACE_PASSED);
    }
    const int count = part.counts == NULL ? 0 : sizes_of(&part);
    uint64_t *sizes = count > 0 ? malloc((size_t)count * sizeof *sizes) : NULL;
    if (count > 0 && sizes == NULL)
        tracer_mark(TRACE_PASSED);
    for (int one = 0; sizes != NULL && one < count; one++)
        sizes[one] = bytes_of(part.counts[one], part.types != NULL ? part.types[one] : part.type);
    tracer_add_with(record, sizes, sizes != NULL ? (uint64_t)count * sizeof *sizes : 0);
    free(sizes);
}

static int own_rank(MPI_Comm comm) {
    int rank = 0;
    PMPI_Comm_rank(comm, &rank);
    return rank;
}

static bool is_root(int root, MPI_Comm comm) { return root == own_rank(comm); }

/* A communicator was made by all ranks of another. */
static void made(MPI_Comm from, const MPI_Comm *to) {
    int is_inter = 0;
    PMPI_Comm_test_inter(from, &is_inter);
    if (is_inter)
        tracer_other("communicator of two groups");
    else
        tracer_add(message(TRACE_MAKE_COMMUNICATOR, MPI_PROC_NULL, 0, from, sizeof(uint64_t)));
    if (*to != MPI_COMM_NULL)
        (void)communicator_number(*to);
}

/* … by some of them only. */
static void made_by_some(const char *name, const MPI_Comm *to) {
    tracer_other(name);
    if (*to != MPI_COMM_NULL)
        (void)communicator_number(*to);
}

static void gone(MPI_Comm comm, const char *name) {
    communicator_forget(comm);
    tracer_other(name);
}

static void unsound(enum trace_unsound what, const char *name) {
    tracer_mark(what);
    tracer_other(name);
}

/* --- point to point ------------------------------------------------------------------------------------- */

#define SEND(name, kind)                                                                                     \
    WRAP(name, (const void *data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm),           \
         (data, count, type, peer, tag, comm), sent(kind, peer, tag, comm, bytes_of(count, type)))
#define ISEND(name, kind, is_persistent)                                                                     \
    WRAP(name,                                                                                               \
         (const void *data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,                  \
          MPI_Request *request),                                                                             \
         (data, count, type, peer, tag, comm, request),                                                      \
         begun_send(kind, peer, tag, comm, bytes_of(count, type), *request, is_persistent))
#define IRECEIVE(name, kind, is_persistent)                                                                  \
    WRAP(name,                                                                                               \
         (void *data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request *request), \
         (data, count, type, peer, tag, comm, request),                                                      \
         begun_receive(kind, peer, tag, comm, bytes_of(count, type), *request, is_persistent))
#define OWN_STATUS                                                                                           \
    MPI_Status own_status;                                                                                   \
    if (status == MPI_STATUS_IGNORE)                                                                         \
    status = &own_status

SEND(Send, TRACE_SEND)
SEND(Rsend, TRACE_SEND)
SEND(Ssend, TRACE_SSEND)
SEND(Bsend, TRACE_BSEND)
ISEND(Isend, TRACE_ISEND, false)
ISEND(Irsend, TRACE_ISEND, false)
ISEND(Issend, TRACE_ISSEND, false)
ISEND(Ibsend, TRACE_IBSEND, false)
ISEND(Send_init, TRACE_SEND_INIT, true)
ISEND(Rsend_init, TRACE_SEND_INIT, true)
ISEND(Ssend_init, TRACE_SSEND_INIT, true)
ISEND(Bsend_init, TRACE_BSEND_INIT, true)
IRECEIVE(Irecv, TRACE_IRECV, false)
IRECEIVE(Recv_init, TRACE_RECV_INIT, true)
WRAP_AFTER(Recv,
           (void *data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Status *status),
           (data, count, type, peer, tag, comm, status), OWN_STATUS, got(TRACE_RECV, peer, tag, comm, status))
WRAP_AFTER(Sendrecv,
           (const void *data, int count, MPI_Datatype type, int peer, int tag, void *to, int to_count,
            MPI_Datatype to_type, int source, int to_tag, MPI_Comm comm, MPI_Status *status),
           (data, count, type, peer, tag, to, to_count, to_type, source, to_tag, comm, status), OWN_STATUS,
           exchanged(peer, tag, bytes_of(count, type), source, to_tag, comm, status))
WRAP_AFTER(Sendrecv_replace,
           (void *data, int count, MPI_Datatype type, int peer, int tag, int source, int to_tag,
            MPI_Comm comm, MPI_Status *status),
           (data, count, type, peer, tag, source, to_tag, comm, status), OWN_STATUS,
           exchanged(peer, tag, bytes_of(count, type), source, to_tag, comm, status))
WRAP(Start, (MPI_Request * request), (request), started(1, request))
WRAP(Startall, (int count, MPI_Request *requests), (count, requests), started(count, requests))
WRAP_AFTER(Request_free, (MPI_Request * request), (request), const MPI_Request handle = *request,
           freed(handle))
WRAP(Cancel, (MPI_Request * request), (request), cancelled(*request))

WRAP_AFTER(Probe, (int peer, int tag, MPI_Comm comm, MPI_Status *status), (peer, tag, comm, status),
           OWN_STATUS, probed(peer, tag, comm, status))
WRAP_AFTER(Iprobe, (int peer, int tag, MPI_Comm comm, int *flag, MPI_Status *status),
           (peer, tag, comm, flag, status), OWN_STATUS,
           *flag ? probed(peer, tag, comm, status) : tracer_vain())
WRAP_AFTER(Mprobe, (int peer, int tag, MPI_Comm comm, MPI_Message *handle, MPI_Status *status),
           (peer, tag, comm, handle, status), OWN_STATUS, probed_matched(peer, tag, comm, *handle, status))
WRAP_AFTER(Improbe, (int peer, int tag, MPI_Comm comm, int *flag, MPI_Message *handle, MPI_Status *status),
           (peer, tag, comm, flag, handle, status), OWN_STATUS,
           *flag ? probed_matched(peer, tag, comm, *handle, status) : tracer_vain())
WRAP_AFTER(Mrecv, (void *data, int count, MPI_Datatype type, MPI_Message *handle, MPI_Status *status),
           (data, count, type, handle, status), OWN_STATUS;
           const MPI_Message own_handle = *handle, got_matched(own_handle, status))
WRAP_AFTER(Imrecv, (void *data, int count, MPI_Datatype type, MPI_Message *handle, MPI_Request *request),
           (data, count, type, handle, request), const MPI_Message own_handle = *handle,
           begun_matched(own_handle, bytes_of(count, type), *request))

#define KEEP_ALL                                                                                             \
    keep(count, requests);                                                                                   \
    statuses = statuses_of(count, statuses)
#define KEEP_ONE                                                                                             \
    OWN_STATUS;                                                                                              \
    keep(1, request)
#define KEEP_ANY                                                                                             \
    OWN_STATUS;                                                                                              \
    keep(count, requests)
WRAP_AFTER(Wait, (MPI_Request * request, MPI_Status *status), (request, status), KEEP_ONE,
           completed_one(TRACE_WAIT, 0, status))
WRAP_AFTER(Waitall, (int count, MPI_Request *requests, MPI_Status *statuses), (count, requests, statuses),
           KEEP_ALL, completed_all(TRACE_WAIT, count, statuses))
WRAP_AFTER(Waitany, (int count, MPI_Request *requests, int *index, MPI_Status *status),
           (count, requests, index, status), KEEP_ANY, completed_one(TRACE_WAIT_SOME, *index, status))
WRAP_AFTER(Waitsome, (int count, MPI_Request *requests, int *done, int *indices, MPI_Status *statuses),
           (count, requests, done, indices, statuses), KEEP_ALL,
           completed_some(TRACE_WAIT_SOME, *done, indices, statuses))
WRAP_AFTER(Test, (MPI_Request * request, int *flag, MPI_Status *status), (request, flag, status), KEEP_ONE,
           *flag ? completed_one(TRACE_TEST, 0, status) : tracer_vain())
WRAP_AFTER(Testall, (int count, MPI_Request *requests, int *flag, MPI_Status *statuses),
           (count, requests, flag, statuses), KEEP_ALL,
           *flag ? completed_all(TRACE_TEST, count, statuses) : tracer_vain())
WRAP_AFTER(Testany, (int count, MPI_Request *requests, int *index, int *flag, MPI_Status *status),
           (count, requests, index, flag, status), KEEP_ANY,
           *flag ? completed_one(TRACE_TEST, *index, status) : tracer_vain())
WRAP_AFTER(Testsome, (int count, MPI_Request *requests, int *done, int *indices, MPI_Status *statuses),
           (count, requests, done, indices, statuses), KEEP_ALL,
           completed_some(TRACE_TEST, *done, indices, statuses))

/* --- collectives, and each as one that is only begun ------------------------------------------------------
 */

#define COLLECTIVE(name, begun_name, declared, given, ...)                                                   \
    WRAP(name, declared, given, MPI_Request *const request = NULL; all_together((struct part){__VA_ARGS__})) \
    WRAP(begun_name, (STRIP declared, MPI_Request * request), (STRIP given, request),                        \
         all_together((struct part){__VA_ARGS__}))
#define OF(which, of_root, of_bytes)                                                                         \
    .kind = which, .comm = comm, .request = request, .root = of_root, .bytes = of_bytes
#define NO_ROOT -1
#define IN_PLACE .in_place = data == MPI_IN_PLACE
/* IN_PLACE gives no count of what is sent: that of what is received stands for it. */
#define OWN_PART (data == MPI_IN_PLACE ? bytes_of(to_count, to_type) : bytes_of(count, type))
#define DATA_TO const void *data, int count, MPI_Datatype type, void *to, int to_count, MPI_Datatype to_type
#define GIVEN_TO data, count, type, to, to_count, to_type

COLLECTIVE(Barrier, Ibarrier, (MPI_Comm comm), (comm), OF(TRACE_BARRIER, NO_ROOT, 0))
COLLECTIVE(Bcast, Ibcast, (void *data, int count, MPI_Datatype type, int root, MPI_Comm comm),
           (data, count, type, root, comm), OF(TRACE_BCAST, root, bytes_of(count, type)))
COLLECTIVE(Gather, Igather, (DATA_TO, int root, MPI_Comm comm), (GIVEN_TO, root, comm),
           OF(TRACE_GATHER, root, OWN_PART), IN_PLACE)
COLLECTIVE(Gatherv, Igatherv,
           (const void *data, int count, MPI_Datatype type, void *to, const int *to_counts, const int *places,
            MPI_Datatype to_type, int root, MPI_Comm comm),
           (data, count, type, to, to_counts, places, to_type, root, comm),
           OF(TRACE_GATHERV, root,
              data == MPI_IN_PLACE ? bytes_of(to_counts[own_rank(comm)], to_type) : bytes_of(count, type)),
           IN_PLACE)
COLLECTIVE(Scatter, Iscatter, (DATA_TO, int root, MPI_Comm comm), (GIVEN_TO, root, comm),
           OF(TRACE_SCATTER, root, is_root(root, comm) ? bytes_of(count, type) : bytes_of(to_count, to_type)),
           .in_place = to == MPI_IN_PLACE)
COLLECTIVE(Scatterv, Iscatterv,
           (const void *data, const int *counts, const int *places, MPI_Datatype type, void *to, int to_count,
            MPI_Datatype to_type, int root, MPI_Comm comm),
           (data, counts, places, type, to, to_count, to_type, root, comm),
           OF(TRACE_SCATTERV, root,
              is_root(root, comm) ? bytes_of(counts[root], type) : bytes_of(to_count, to_type)),
           .counts = is_root(root, comm) ? counts : NULL, .type = type, .in_place = to == MPI_IN_PLACE)
COLLECTIVE(Allgather, Iallgather, (DATA_TO, MPI_Comm comm), (GIVEN_TO, comm),
           OF(TRACE_ALLGATHER, NO_ROOT, OWN_PART), IN_PLACE)
COLLECTIVE(Allgatherv, Iallgatherv,
           (const void *data, int count, MPI_Datatype type, void *to, const int *to_counts, const int *places,
            MPI_Datatype to_type, MPI_Comm comm),
           (data, count, type, to, to_counts, places, to_type, comm),
           OF(TRACE_ALLGATHERV, NO_ROOT, bytes_of(to_counts[own_rank(comm)], to_type)), IN_PLACE,
           .counts = to_counts, .type = to_type)
COLLECTIVE(Alltoall, Ialltoall, (DATA_TO, MPI_Comm comm), (GIVEN_TO, comm),
           OF(TRACE_ALLTOALL, NO_ROOT, OWN_PART), IN_PLACE)
COLLECTIVE(Alltoallv, Ialltoallv,
           (const void *data, const int *counts, const int *places, MPI_Datatype type, void *to,
            const int *to_counts, const int *to_places, MPI_Datatype to_type, MPI_Comm comm),
           (data, counts, places, type, to, to_counts, to_places, to_type, comm),
           OF(TRACE_ALLTOALLV, NO_ROOT, 0), IN_PLACE, .counts = data == MPI_IN_PLACE ? to_counts : counts,
           .type = data == MPI_IN_PLACE ? to_type : type)
COLLECTIVE(Alltoallw, Ialltoallw,
           (const void *data, const int *counts, const int *places, const MPI_Datatype *types, void *to,
            const int *to_counts, const int *to_places, const MPI_Datatype *to_types, MPI_Comm comm),
           (data, counts, places, types, to, to_counts, to_places, to_types, comm),
           OF(TRACE_ALLTOALLW, NO_ROOT, 0), IN_PLACE, .counts = data == MPI_IN_PLACE ? to_counts : counts,
           .types = data == MPI_IN_PLACE ? to_types : types)

#define REDUCTION const void *data, void *to, int count, MPI_Datatype type, MPI_Op op
COLLECTIVE(Reduce, Ireduce, (REDUCTION, int root, MPI_Comm comm), (data, to, count, type, op, root, comm),
           OF(TRACE_REDUCE, root, bytes_of(count, type)), IN_PLACE)
COLLECTIVE(Allreduce, Iallreduce, (REDUCTION, MPI_Comm comm), (data, to, count, type, op, comm),
           OF(TRACE_ALLREDUCE, NO_ROOT, bytes_of(count, type)), IN_PLACE)
COLLECTIVE(Scan, Iscan, (REDUCTION, MPI_Comm comm), (data, to, count, type, op, comm),
           OF(TRACE_SCAN, NO_ROOT, bytes_of(count, type)), IN_PLACE)
COLLECTIVE(Exscan, Iexscan, (REDUCTION, MPI_Comm comm), (data, to, count, type, op, comm),
           OF(TRACE_EXSCAN, NO_ROOT, bytes_of(count, type)), IN_PLACE)
COLLECTIVE(Reduce_scatter_block, Ireduce_scatter_block, (REDUCTION, MPI_Comm comm),
           (data, to, count, type, op, comm), OF(TRACE_REDUCE_SCATTER_BLOCK, NO_ROOT, bytes_of(count, type)),
           IN_PLACE)
COLLECTIVE(Reduce_scatter, Ireduce_scatter,
           (const void *data, void *to, const int *counts, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
           (data, to, counts, type, op, comm),
           OF(TRACE_REDUCE_SCATTER, NO_ROOT, bytes_of(counts[own_rank(comm)], type)), IN_PLACE,
           .counts = counts, .type = type)

COLLECTIVE(Neighbor_allgather, Ineighbor_allgather, (DATA_TO, MPI_Comm comm), (GIVEN_TO, comm),
           OF(TRACE_NEIGHBOR_ALLGATHER, NO_ROOT, bytes_of(count, type)))
COLLECTIVE(Neighbor_allgatherv, Ineighbor_allgatherv,
           (const void *data, int count, MPI_Datatype type, void *to, const int *to_counts, const int *places,
            MPI_Datatype to_type, MPI_Comm comm),
           (data, count, type, to, to_counts, places, to_type, comm),
           OF(TRACE_NEIGHBOR_ALLGATHERV, NO_ROOT, bytes_of(count, type)))
COLLECTIVE(Neighbor_alltoall, Ineighbor_alltoall, (DATA_TO, MPI_Comm comm), (GIVEN_TO, comm),
           OF(TRACE_NEIGHBOR_ALLTOALL, NO_ROOT, bytes_of(count, type)))
COLLECTIVE(Neighbor_alltoallv, Ineighbor_alltoallv,
           (const void *data, const int *counts, const int *places, MPI_Datatype type, void *to,
            const int *to_counts, const int *to_places, MPI_Datatype to_type, MPI_Comm comm),
           (data, counts, places, type, to, to_counts, to_places, to_type, comm),
           OF(TRACE_NEIGHBOR_ALLTOALLV, NO_ROOT, 0), .counts = counts, .type = type)
COLLECTIVE(Neighbor_alltoallw, Ineighbor_alltoallw,
           (const void *data, const int *counts, const MPI_Aint *places, const MPI_Datatype *types, void *to,
            const int *to_counts, const MPI_Aint *to_places, const MPI_Datatype *to_types, MPI_Comm comm),
           (data, counts, places, types, to, to_counts, to_places, to_types, comm),
           OF(TRACE_NEIGHBOR_ALLTOALLW, NO_ROOT, 0), .counts = counts, .types = types)

/* --- communicators -------------------------------------------------------------------------------------- */

#define MAKE(name, declared, given) WRAP(name, declared, given, made(comm, to))
MAKE(Comm_dup, (MPI_Comm comm, MPI_Comm *to), (comm, to))
MAKE(Comm_dup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *to), (comm, info, to))
MAKE(Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm *to), (comm, group, to))
MAKE(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm *to), (comm, color, key, to))
MAKE(Comm_split_type, (MPI_Comm comm, int kind, int key, MPI_Info info, MPI_Comm *to),
     (comm, kind, key, info, to))
MAKE(Cart_create,
     (MPI_Comm comm, int dimensions, const int *sizes, const int *periods, int reorder, MPI_Comm *to),
     (comm, dimensions, sizes, periods, reorder, to))
MAKE(Cart_sub, (MPI_Comm comm, const int *kept, MPI_Comm *to), (comm, kept, to))
MAKE(Graph_create, (MPI_Comm comm, int nodes, const int *index, const int *edges, int reorder, MPI_Comm *to),
     (comm, nodes, index, edges, reorder, to))
MAKE(Dist_graph_create,
     (MPI_Comm comm, int count, const int *sources, const int *degrees, const int *targets,
      const int *weights, MPI_Info info, int reorder, MPI_Comm *to),
     (comm, count, sources, degrees, targets, weights, info, reorder, to))
MAKE(Dist_graph_create_adjacent,
     (MPI_Comm comm, int in, const int *sources, const int *in_weights, int out, const int *targets,
      const int *out_weights, MPI_Info info, int reorder, MPI_Comm *to),
     (comm, in, sources, in_weights, out, targets, out_weights, info, reorder, to))
WRAP(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *to), (comm, group, tag, to),
     made_by_some("MPI_Comm_create_group", to))
WRAP(Comm_idup, (MPI_Comm comm, MPI_Comm *to, MPI_Request *request), (comm, to, request),
     unsound(TRACE_PASSED, "MPI_Comm_idup"))
WRAP(Intercomm_create, (MPI_Comm comm, int leader, MPI_Comm peers, int remote, int tag, MPI_Comm *to),
     (comm, leader, peers, remote, tag, to), unsound(TRACE_INTER, "MPI_Intercomm_create"))
WRAP(Intercomm_merge, (MPI_Comm comm, int high, MPI_Comm *to), (comm, high, to),
     made_by_some("MPI_Intercomm_merge", to))
WRAP_AFTER(Comm_free, (MPI_Comm * comm), (comm), const MPI_Comm handle = *comm, gone(handle, "MPI_Comm_free"))
WRAP_AFTER(Comm_disconnect, (MPI_Comm * comm), (comm), const MPI_Comm handle = *comm,
           gone(handle, "MPI_Comm_disconnect"))

/* --- what a replay cannot follow: noticed where it begins
 * ---------------------------------------------------- */

WRAP(Win_create, (void *base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, MPI_Win *win),
     (base, size, unit, info, comm, win), unsound(TRACE_ONE_SIDED, "MPI_Win_create"))
WRAP(Win_allocate, (MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win),
     (size, unit, info, comm, base, win), unsound(TRACE_ONE_SIDED, "MPI_Win_allocate"))
WRAP(Win_allocate_shared, (MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win),
     (size, unit, info, comm, base, win), unsound(TRACE_ONE_SIDED, "MPI_Win_allocate_shared"))
WRAP(Win_create_dynamic, (MPI_Info info, MPI_Comm comm, MPI_Win *win), (info, comm, win),
     unsound(TRACE_ONE_SIDED, "MPI_Win_create_dynamic"))
WRAP(Win_fence, (int assertion, MPI_Win win), (assertion, win), tracer_other("MPI_Win_fence"))
WRAP(Put,
     (const void *data, int count, MPI_Datatype type, int peer, MPI_Aint place, int to_count,
      MPI_Datatype to_type, MPI_Win win),
     (data, count, type, peer, place, to_count, to_type, win), tracer_other("MPI_Put"))
WRAP(Get,
     (void *data, int count, MPI_Datatype type, int peer, MPI_Aint place, int to_count, MPI_Datatype to_type,
      MPI_Win win),
     (data, count, type, peer, place, to_count, to_type, win), tracer_other("MPI_Get"))
WRAP(Accumulate,
     (const void *data, int count, MPI_Datatype type, int peer, MPI_Aint place, int to_count,
      MPI_Datatype to_type, MPI_Op op, MPI_Win win),
     (data, count, type, peer, place, to_count, to_type, op, win), tracer_other("MPI_Accumulate"))
WRAP(Comm_spawn,
     (const char *command, char **words, int most, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *to,
      int *codes),
     (command, words, most, info, root, comm, to, codes), unsound(TRACE_PROCESSES, "MPI_Comm_spawn"))
WRAP(Comm_spawn_multiple,
     (int count, char **commands, char ***words, const int *most, const MPI_Info *infos, int root,
      MPI_Comm comm, MPI_Comm *to, int *codes),
     (count, commands, words, most, infos, root, comm, to, codes),
     unsound(TRACE_PROCESSES, "MPI_Comm_spawn_multiple"))
WRAP(Comm_accept, (const char *port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *to),
     (port, info, root, comm, to), unsound(TRACE_PROCESSES, "MPI_Comm_accept"))
WRAP(Comm_connect, (const char *port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *to),
     (port, info, root, comm, to), unsound(TRACE_PROCESSES, "MPI_Comm_connect"))
WRAP(Comm_join, (int socket, MPI_Comm *to), (socket, to), unsound(TRACE_PROCESSES, "MPI_Comm_join"))
WRAP(File_open, (MPI_Comm comm, const char *name, int mode, MPI_Info info, MPI_File *file),
     (comm, name, mode, info, file), unsound(TRACE_FILES, "MPI_File_open"))
