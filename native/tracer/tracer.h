/* What every wrapper does: take the time around the library's own call, and write records of it. */
#ifndef WULF_TRACER_H
#define WULF_TRACER_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "trace/format.h"

/* Before the library's own call. Returns what tracer_left wants. */
uint64_t tracer_enter(void);
/* After it. True when it is to be recorded, and then tracer_done has to follow: not for calls that the
 * library makes itself, nor before MPI_Init and after MPI_Finalize. */
bool tracer_left(uint64_t entered_ns, int code);
void tracer_done(void);
/* Nothing came of the call, a look in vain: its time is nobody's. */
void tracer_vain(void);

/* A record; the first of a call has its times. */
void tracer_add(struct trace_record record);
void tracer_add_with(struct trace_record record, const void *payload, uint64_t bytes);
/* A call of which only the time is known, and its name. */
void tracer_other(const char *name);
/* Something that a replay cannot follow. */
void tracer_mark(enum trace_unsound what);

#endif
