/* One rank's stream: a file that grows while it is written, and can be read whenever the program dies. */
#ifndef WULF_TRACER_STREAM_H
#define WULF_TRACER_STREAM_H

#include <stdint.h>

#include "trace/format.h"

/* Begin the file of a rank in a directory, of at most `limit` bytes. Returns 0, or -1 with errno. */
int stream_open(const char *directory, int rank, int ranks, uint64_t limit);
/* Where it is; empty when it is not open. */
const char *stream_path(void);
struct trace_header *stream_header(void);

/* Append a record, and what belongs to it. Where there is no room any more the call is counted as lost. */
void stream_append(const struct trace_record *record, const void *payload, uint64_t bytes);

/* Say that all is there, and shorten the file to it. Returns 0, or -1 with errno. */
int stream_finish(uint64_t run_ns);

#endif
