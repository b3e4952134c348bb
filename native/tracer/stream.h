/* One rank's stream: a file that grows while it is written, and can be read whenever the program dies.
 *
 * Records go to a window first, a small file beside it (NAME.tail) that is mapped: what is in it stays when
 * the process is killed. A full window is appended to the stream; the last one, too, and then there is no
 * window any more. So pages are touched for the first time once, not for each 128 records. */
#ifndef WULF_TRACER_STREAM_H
#define WULF_TRACER_STREAM_H

#include <stdint.h>

#include "trace/format.h"

extern struct stream {
    struct trace_header *header; /* of the file; NULL: not open */
    struct trace_record *next,
        *end;       /* in the window: where the next record goes, and where there is no room */
    uint64_t slots; /* that are whole */
} stream;

/* Begin the file of a rank in a directory, of at most `limit` bytes. Returns 0, or -1 with errno: EEXIST
 * where another program has left one. */
int stream_open(const char *directory, int rank, int ranks, uint64_t limit);
/* Where it is; empty when it was not opened. */
const char *stream_path(void);

/* What was written to stream.next is whole. */
static inline void stream_take(void) {
    stream.next++;
    __atomic_store_n(&stream.header->slots, ++stream.slots, __ATOMIC_RELEASE);
}

/* Append a record, and what belongs to it. Where there is no room any more the call is counted as lost. */
void stream_append(const struct trace_record *record, const void *payload, uint64_t bytes);

/* Say that all is there. Returns 0, or -1 with errno. */
int stream_finish(uint64_t run_ns);

#endif
