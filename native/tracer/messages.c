/* Messages between two ranks, a line a call: what is recorded of each stands before them. */
#include "tracer/messages.h"

#include <stdlib.h>

#include "tracer/communicators.h"
#include "tracer/requests.h"
#include "tracer/types.h"
#include "tracer/wrap.h"

static uint8_t wild(int peer, int tag) {
    return peer == MPI_ANY_SOURCE || tag == MPI_ANY_TAG ? TRACE_WILD : 0;
}

uint64_t bytes_received(const MPI_Status *status) {
    int count = 0;
    MPI_Count more = 0;
    PMPI_Get_count(status, MPI_BYTE, &count);
    if (UNLIKELY(count == MPI_UNDEFINED) && PMPI_Get_elements_x(status, MPI_BYTE, &more) == MPI_SUCCESS)
        return more > 0 ? (uint64_t)more : 0;
    return count > 0 ? (uint64_t)count : 0;
}

static struct trace_record message(enum trace_kind kind, int peer, int tag, MPI_Comm comm, uint64_t bytes) {
    return (struct trace_record){.kind = (uint8_t)kind,
                                 .comm = communicator_number(comm),
                                 .peer = peer_of(peer),
                                 .tag = tag_of(tag),
                                 .bytes = bytes};
}

/* As it came, where it was asked for from `peer` with `tag`. */
static struct trace_record arrived(enum trace_kind kind, int peer, int tag, MPI_Comm comm,
                                   const MPI_Status *status) {
    struct trace_record record =
        message(kind, status->MPI_SOURCE, status->MPI_TAG, comm, bytes_received(status));
    if (peer == MPI_PROC_NULL)
        record.peer = TRACE_NOBODY;
    record.flags = wild(peer, tag);
    return record;
}

static void exchanged(int peer, int tag, uint64_t bytes, int source, int receive_tag, MPI_Comm comm,
                      const MPI_Status *status) {
    struct trace_record record = message(TRACE_SENDRECV, peer, tag, comm, bytes);
    record.flags = TRACE_FIRST;
    tracer_add(record);
    record = arrived(TRACE_RECV_PART, source, receive_tag, comm, status);
    record.flags |= TRACE_NEXT;
    tracer_add(record);
}

/* Returns its number. */
static uint32_t begun(struct trace_record record, MPI_Request handle, struct request like) {
    like.comm = record.comm;
    like.is_idle = like.is_persistent;
    record.request = request_add(handle, like);
    if (record.request == 0)
        tracer_mark(TRACE_PASSED); /* no memory */
    tracer_add(record);
    return record.request;
}

static void begun_send(enum trace_kind kind, int peer, int tag, MPI_Comm comm, uint64_t bytes,
                       MPI_Request handle, bool is_persistent) {
    begun(message(kind, peer, tag, comm, bytes), handle, (struct request){.is_persistent = is_persistent});
}

static void begun_receive(enum trace_kind kind, int peer, int tag, MPI_Comm comm, uint64_t bytes,
                          MPI_Request handle, bool is_persistent) {
    struct trace_record record = message(kind, peer, tag, comm, bytes);
    record.flags = wild(peer, tag);
    begun(record, handle, (struct request){.is_receive = true, .is_persistent = is_persistent});
}

/* The status of a send and receive that are begun together is nonsense in MPICH (4.0, 5.0). */
#ifdef OPEN_MPI
static const bool IS_BLIND = false;
#else
static const bool IS_BLIND = true;
#endif

/* One request for both: they are two in the trace, complete together. */
static void begun_both(int peer, int tag, uint64_t bytes, int source, int receive_tag, uint64_t receive_bytes,
                       MPI_Comm comm, MPI_Request handle) {
    struct trace_record record = message(TRACE_ISEND, peer, tag, comm, bytes);
    record.flags = TRACE_FIRST;
    const uint32_t beside = begun(record, handle, (struct request){0});
    record = message(TRACE_IRECV, source, receive_tag, comm, receive_bytes);
    record.flags = TRACE_NEXT | wild(source, receive_tag);
    if (IS_BLIND && (record.flags & TRACE_WILD))
        tracer_mark(TRACE_PASSED);
    begun(record, handle, (struct request){.is_receive = true, .beside = beside, .is_blind = IS_BLIND});
}

static void started(int count, MPI_Request *requests) {
    for (int one = 0; one < count; one++) {
        const uint32_t number = request_find(requests[one]);
        if (number == 0) {
            tracer_mark(TRACE_PASSED);
            continue;
        }
        struct request *request = request_get(number);
        request->is_idle = false;
        tracer_add((struct trace_record){.kind = TRACE_START,
                                         .flags = one > 0 ? TRACE_NEXT : 0,
                                         .comm = request->comm,
                                         .peer = TRACE_NOBODY,
                                         .request = number});
    }
}

/* The number of a request that is about to be freed: its handle may be another one's after that. */
static uint32_t leaving(MPI_Request handle) {
    if (!tracer.is_shared)
        return request_find(handle);
    tracer_hold();
    const uint32_t number = request_take(handle);
    tracer_unlock();
    return number;
}

static void freed(uint32_t number) {
    for (uint32_t beside = 0; number != 0; number = beside) {
        const struct request *request = request_get(number);
        beside = request->beside;
        if (request->is_cancelled) /* nobody will know whether it was */
            tracer_mark(TRACE_CANCELLED);
        tracer_add((struct trace_record){
            .kind = TRACE_FREE, .comm = request->comm, .peer = TRACE_NOBODY, .request = number});
        request_remove(number);
    }
}

static void cancelled(MPI_Request handle) {
    const uint32_t number = request_find(handle);
    tracer_add((struct trace_record){.kind = TRACE_CANCEL, .peer = TRACE_NOBODY, .request = number});
    if (number == 0)
        tracer_mark(TRACE_CANCELLED);
    else
        request_get(number)->is_cancelled = true;
}

/* --- messages that were matched before they are received ------------------------------------------------ */

static struct matched {
    MPI_Message handle;
    MPI_Comm comm;
    int source, tag;
} *matched;
static int matched_count, matched_room;

static void probed(int peer, int tag, MPI_Comm comm, const MPI_Status *status) {
    tracer_add(arrived(TRACE_PROBE, peer, tag, comm, status));
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
    tracer_add(arrived(TRACE_MRECV, from.source, from.tag, from.comm, status));
}

static void begun_matched(MPI_Message handle, uint64_t bytes, MPI_Request request) {
    const struct matched from = take_matched(handle);
    begun_receive(TRACE_IMRECV, from.source, from.tag, from.comm, bytes, request, false);
}

/* --- the calls ------------------------------------------------------------------------------------------ */

#define COUNT int
#define SIZED(name) name
#include "tracer/messages_sized.h"
#undef COUNT
#undef SIZED
#define COUNT MPI_Count
#define SIZED(name) name##_c
#include "tracer/messages_sized.h"

WRAP(Start, (MPI_Request * request), (request), started(1, request))
WRAP(Startall, (int count, MPI_Request *requests), (count, requests), started(count, requests))
WRAP_AFTER(Request_free, (MPI_Request * request), (request), const uint32_t number = leaving(*request),
           freed(number))
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
