/* What one rank does: its stream of a trace, in memory. */
#ifndef WULF_EMULATE_STREAM_H
#define WULF_EMULATE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/failure.h"
#include "trace/format.h"

struct stream {
    unsigned char *slots;
    uint64_t count;
};

/* A record with what belongs to it. */
struct entry {
    struct trace_record record;
    uint64_t compute_ns; /* before it */
    const unsigned char *payload;
    uint64_t payload_bytes;
};

enum stream_state { STREAM_ENTRY, STREAM_END, STREAM_DAMAGED };

/* The record at a slot; `place` is then that of the next one. */
enum stream_state stream_next(const struct stream *stream, uint64_t *place, struct entry *entry);

/* Whether an entry says what the next ones belong to, and that it is this. */
static inline bool entry_is_mark(const struct entry *entry, enum trace_mark mark) {
    return entry->record.kind == TRACE_PHASE && entry->record.request == mark;
}

/* Number `index` of the payload, of 64 bits; 0 beyond its end. */
uint64_t entry_number(const struct entry *entry, uint64_t index);

/* Rank 0 reads the file and gives every rank its stream: no other node needs it. All ranks call it. */
int stream_deliver(const char *path, struct stream *stream, struct failure *failure);
void stream_free(struct stream *stream);

#endif
