/* What every wrapper does: take the time around the library's own call, and write records of it. */
#ifndef WULF_TRACER_H
#define WULF_TRACER_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "trace/format.h"
#include "tracer/stream.h"
#include "tracer/ticks.h"

#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

extern struct tracer {
    bool is_open;         /* between MPI_Init and MPI_Finalize */
    bool is_shared;       /* several threads may call: MPI_THREAD_MULTIPLE */
    uint8_t failed;       /* TRACE_FAILED when the call returned an error */
    uint64_t begun, last; /* [ticks]: of the program, of the return of the call before */
    uint64_t entered, left;
    uint64_t compute_ns, call_ns; /* for the next record: the first of a call takes them */
} tracer;

/* The library may call MPI in MPI: the outermost call is the program's. */
extern _Thread_local bool tracer_is_inside __attribute__((tls_model("initial-exec")));

void tracer_enter_shared(void);
/* After a call, which took so long [ticks]: until tracer_unlock nobody else records anything. */
void tracer_leave_shared(uint64_t took);
/* Write to the header which threads called, and how far at the same time. */
void tracer_tell_threads(void);
/* What no other thread may change is looked up before the library's own call. */
void tracer_hold(void);
void tracer_unlock(void);
void tracer_add_with(struct trace_record record, const void *payload, uint64_t bytes);
/* A call of which only the time is known, and its name. */
void tracer_other(const char *name);
/* The same of a call on a file, which reads or writes so many bytes on this rank. */
void tracer_file(const char *name, uint64_t bytes);
/* Something that a replay cannot follow. */
void tracer_mark(enum trace_unsound what);

/* Before the library's own call. False when nothing is recorded of it: it is the library's, or there is no
 * trace; then tracer_left and tracer_done must not follow. */
static inline bool tracer_enter(void) {
    if (tracer_is_inside || UNLIKELY(!tracer.is_open))
        return false;
    tracer_is_inside = true;
    if (UNLIKELY(tracer.is_shared))
        tracer_enter_shared();
    return true;
}

/* After it: what is added until tracer_done is of this call. */
static inline void tracer_left(uint64_t entered, int code) {
    const uint64_t left = ticks_now();
    if (UNLIKELY(tracer.is_shared))
        tracer_leave_shared(left - entered);
    tracer.entered = entered;
    tracer.left = left;
    tracer.call_ns = ticks_to_ns(left - entered);
    tracer.compute_ns = entered > tracer.last ? ticks_to_ns(entered - tracer.last) : 0;
    tracer.failed = code == MPI_SUCCESS ? 0 : TRACE_FAILED;
}

static inline void tracer_done(void) {
    tracer.last = tracer.left;
    if (UNLIKELY(tracer.is_shared))
        tracer_unlock();
    tracer_is_inside = false;
}

/* Nothing came of the call, a look in vain: its time is nobody's. */
static inline void tracer_vain(void) { tracer.left = tracer.last + (tracer.left - tracer.entered); }

/* A record; the first of a call has its times. Written field by field to where it stays: put together
 * elsewhere and copied, the copy would wait for every single field. */
static inline void tracer_add(struct trace_record record) {
    if (UNLIKELY((tracer.compute_ns | tracer.call_ns) >> 32 != 0 || stream.next == stream.end)) {
        tracer_add_with(record, NULL, 0);
        return;
    }
    struct trace_record *place = stream.next;
    place->kind = record.kind;
    place->flags = record.flags | tracer.failed;
    place->comm = record.comm;
    place->peer = record.peer;
    place->tag = record.tag;
    place->request = record.request;
    place->bytes = record.bytes;
    place->compute_ns = (uint32_t)tracer.compute_ns;
    place->call_ns = (uint32_t)tracer.call_ns;
    stream_take();
    tracer.compute_ns = tracer.call_ns = 0;
}

#endif
