/* Requests that are complete, and those that wait for them or look whether they are, a line a call. Their
 * handles are kept as they were before the call, which sets them to none. */
#include <mpi.h>
#include <stdlib.h>

#include "tracer/communicators.h"
#include "tracer/messages.h"
#include "tracer/requests.h"
#include "tracer/wrap.h"

static _Thread_local struct {
    MPI_Request *handles;
    MPI_Status *statuses;
    uint32_t *numbers; /* where several threads call: of the handles, as far as they are not complete */
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
    uint32_t *numbers = realloc(scratch.numbers, (size_t)count * sizeof *numbers);
    if (numbers != NULL)
        scratch.numbers = numbers;
    if (handles == NULL || statuses == NULL || numbers == NULL) {
        tracer_mark(TRACE_PASSED);
        return false;
    }
    scratch.room = count;
    return true;
}

static void keep(int count, const MPI_Request *requests) {
    if (!have_scratch(count))
        return;
    for (int one = 0; one < count; one++)
        scratch.handles[one] = requests[one];
    if (UNLIKELY(tracer.is_shared)) {
        tracer_hold();
        for (int one = 0; one < count; one++)
            scratch.numbers[one] = request_take(requests[one]);
        tracer_unlock();
    }
}

/* Those that are not complete are free for another call. */
static void give_back(int count) {
    if (UNLIKELY(tracer.is_shared))
        for (int one = 0; one < count && one < scratch.room; one++)
            if (scratch.numbers[one] != 0)
                request_get(scratch.numbers[one])->is_taken = false;
}

/* Where the statuses of a call go: the program's, or ours where it wants none. */
static MPI_Status *statuses_of(int count, MPI_Status *given) {
    return given != MPI_STATUSES_IGNORE || !have_scratch(count) ? given : scratch.statuses;
}

/* --- what is recorded ----------------------------------------------------------------------------------- */

/* Of one call. */
struct completions {
    enum trace_kind kind;
    int records; /* that were written */
    bool
        is_unknown; /* a request that is none of ours: of a file, of memory of others, of the program's own */
};

/* Whether MPI_Cancel took a receive back, which its end alone says. What has become of a send is not known.
 */
static bool was_taken_back(struct request *request, const MPI_Status *status) {
    int was_cancelled = 0;
    if (!request->is_cancelled)
        return false;
    request->is_cancelled = false;
    const bool is_plain = request->is_receive && !request->is_blind && request->beside == 0;
    if (status == MPI_STATUS_IGNORE || PMPI_Test_cancelled(status, &was_cancelled) != MPI_SUCCESS ||
        (was_cancelled && !is_plain))
        tracer_mark(TRACE_CANCELLED);
    return was_cancelled;
}

static void end(struct completions *so_far, uint32_t number, const MPI_Status *status) {
    struct request *request = request_get(number);
    struct trace_record record = {.kind = (uint8_t)so_far->kind,
                                  .flags = so_far->records > 0 ? TRACE_NEXT : 0,
                                  .comm = request->comm,
                                  .peer = TRACE_NOBODY,
                                  .request = number};
    if (!was_taken_back(request, status) && request->is_receive && !request->is_blind &&
        status != MPI_STATUS_IGNORE) {
        record.peer = peer_of(status->MPI_SOURCE);
        record.tag = tag_of(status->MPI_TAG);
        record.bytes = bytes_received(status);
    }
    tracer_add(record);
    so_far->records++;
}

static uint32_t number_of(int place) {
    return UNLIKELY(tracer.is_shared) ? scratch.numbers[place] : request_find(scratch.handles[place]);
}

/* The request at a place of those that were kept. */
static void completed(struct completions *so_far, int place, const MPI_Status *status) {
    if (scratch.handles[place] == MPI_REQUEST_NULL)
        return;
    const uint32_t number = number_of(place);
    if (number == 0) {
        so_far->is_unknown = true;
        return;
    }
    struct request *request = request_get(number);
    if (request->is_idle)
        return;
    end(so_far, number, status);
    if (request->is_persistent) {
        request->is_idle = true;
        return;
    }
    const uint32_t beside = request->beside;
    request_remove(number);
    scratch.numbers[place] = 0;
    if (beside != 0) {
        end(so_far, beside, MPI_STATUS_IGNORE);
        request_remove(beside);
    }
}

/* A call that ended without a record had nothing to do, or waited for what is not known. */
static void finished(const struct completions *all, const char *name) {
    if (all->records > 0)
        return;
    if (all->is_unknown && all->kind != TRACE_TEST)
        tracer_other(name);
    else
        tracer_vain();
}

static void completed_at(enum trace_kind kind, int place, const MPI_Status *status, const char *name) {
    struct completions all = {.kind = kind};
    completed(&all, place, status);
    finished(&all, name);
}

static void completed_one(enum trace_kind kind, const MPI_Status *status, const char *name) {
    if (scratch.room > 0)
        completed_at(kind, 0, status, name);
    else
        tracer_vain();
}

static void completed_all(enum trace_kind kind, int count, const MPI_Status *statuses, const char *name) {
    struct completions all = {.kind = kind};
    for (int one = 0; one < count && one < scratch.room; one++)
        completed(&all, one, statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[one]);
    finished(&all, name);
}

static void completed_some(enum trace_kind kind, int done, const int *indices, const MPI_Status *statuses,
                           const char *name) {
    struct completions all = {.kind = kind};
    for (int one = 0; one < done; one++)
        if (indices[one] < scratch.room)
            completed(&all, indices[one],
                      statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[one]);
    finished(&all, name);
}

static void completed_any(enum trace_kind kind, int index, const MPI_Status *status, const char *name) {
    if (index == MPI_UNDEFINED || index >= scratch.room)
        tracer_vain();
    else
        completed_at(kind, index, status, name);
}

/* --- the calls ------------------------------------------------------------------------------------------ */

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
           (completed_one(TRACE_WAIT, status, "MPI_Wait"), give_back(1)))
WRAP_AFTER(Waitall, (int count, MPI_Request *requests, MPI_Status *statuses), (count, requests, statuses),
           KEEP_ALL, (completed_all(TRACE_WAIT, count, statuses, "MPI_Waitall"), give_back(count)))
WRAP_AFTER(Waitany, (int count, MPI_Request *requests, int *index, MPI_Status *status),
           (count, requests, index, status), KEEP_ANY,
           (completed_any(TRACE_WAIT_SOME, *index, status, "MPI_Waitany"), give_back(count)))
WRAP_AFTER(Waitsome, (int count, MPI_Request *requests, int *done, int *indices, MPI_Status *statuses),
           (count, requests, done, indices, statuses), KEEP_ALL,
           (completed_some(TRACE_WAIT_SOME, *done, indices, statuses, "MPI_Waitsome"), give_back(count)))
WRAP_AFTER(Test, (MPI_Request * request, int *flag, MPI_Status *status), (request, flag, status), KEEP_ONE,
           (*flag ? completed_one(TRACE_TEST, status, "") : tracer_vain(), give_back(1)))
WRAP_AFTER(Testall, (int count, MPI_Request *requests, int *flag, MPI_Status *statuses),
           (count, requests, flag, statuses), KEEP_ALL,
           (*flag ? completed_all(TRACE_TEST, count, statuses, "") : tracer_vain(), give_back(count)))
WRAP_AFTER(Testany, (int count, MPI_Request *requests, int *index, int *flag, MPI_Status *status),
           (count, requests, index, flag, status), KEEP_ANY,
           (*flag ? completed_any(TRACE_TEST, *index, status, "") : tracer_vain(), give_back(count)))
WRAP_AFTER(Testsome, (int count, MPI_Request *requests, int *done, int *indices, MPI_Status *statuses),
           (count, requests, done, indices, statuses), KEEP_ALL,
           (completed_some(TRACE_TEST, *done, indices, statuses, ""), give_back(count)))

/* These leave the request where it is; for the trace it is complete with the first that sees it. */
#ifdef WULF_STATUS_OF_CONST_REQUESTS /* CMake has asked mpi.h */
typedef const MPI_Request seen_request;
#else
typedef MPI_Request seen_request;
#endif
WRAP_AFTER(Request_get_status, (MPI_Request handle, int *flag, MPI_Status *status), (handle, flag, status),
           OWN_STATUS;
           keep(1, &handle), (*flag ? completed_one(TRACE_TEST, status, "") : tracer_vain(), give_back(1)))
WRAP_AFTER(Request_get_status_all, (int count, seen_request *requests, int *flag, MPI_Status *statuses),
           (count, requests, flag, statuses), KEEP_ALL,
           (*flag ? completed_all(TRACE_TEST, count, statuses, "") : tracer_vain(), give_back(count)))
WRAP_AFTER(Request_get_status_any,
           (int count, seen_request *requests, int *index, int *flag, MPI_Status *status),
           (count, requests, index, flag, status), KEEP_ANY,
           (*flag ? completed_any(TRACE_TEST, *index, status, "") : tracer_vain(), give_back(count)))
WRAP_AFTER(Request_get_status_some,
           (int count, seen_request *requests, int *done, int *indices, MPI_Status *statuses),
           (count, requests, done, indices, statuses), KEEP_ALL,
           (completed_some(TRACE_TEST, *done, indices, statuses, ""), give_back(count)))
