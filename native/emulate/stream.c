#include "emulate/stream.h"

#include <stdlib.h>
#include <string.h>

enum { NUMBER_BYTES = sizeof(uint64_t) };

static uint64_t number_at(const unsigned char *bytes) {
    uint64_t number = 0;
    memcpy(&number, bytes, sizeof number);
    return number;
}

/* One slot, and the payload behind it. */
static enum stream_state read_slot(const struct stream *stream, uint64_t *place, struct entry *entry) {
    if (*place >= stream->count)
        return STREAM_END;
    memcpy(&entry->record, stream->slots + *place * TRACE_SLOT_BYTES, sizeof entry->record);
    (*place)++;
    entry->payload = NULL;
    entry->payload_bytes = 0;
    if (!(entry->record.flags & TRACE_PAYLOAD))
        return STREAM_ENTRY;
    const uint64_t rest = (stream->count - *place) * TRACE_SLOT_BYTES;
    if (rest < TRACE_SLOT_BYTES)
        return STREAM_DAMAGED;
    const unsigned char *begin = stream->slots + *place * TRACE_SLOT_BYTES;
    entry->payload_bytes = number_at(begin);
    entry->payload = begin + NUMBER_BYTES;
    if (entry->payload_bytes > rest - NUMBER_BYTES)
        return STREAM_DAMAGED;
    *place += (entry->payload_bytes + NUMBER_BYTES + TRACE_SLOT_BYTES - 1) / TRACE_SLOT_BYTES;
    return STREAM_ENTRY;
}

enum stream_state stream_next(const struct stream *stream, uint64_t *place, struct entry *entry) {
    enum stream_state state = read_slot(stream, place, entry);
    if (state != STREAM_ENTRY || entry->record.kind != TRACE_TIME) {
        entry->compute_ns = entry->record.compute_ns;
        return state;
    }
    /* Times that 32 bits do not hold are a record of their own. */
    const uint64_t compute_ns = entry->record.bytes;
    state = read_slot(stream, place, entry);
    entry->compute_ns = compute_ns;
    return state == STREAM_ENTRY && entry->record.kind != TRACE_TIME ? STREAM_ENTRY : STREAM_DAMAGED;
}

uint64_t entry_number(const struct entry *entry, uint64_t index) {
    return index < entry->payload_bytes / NUMBER_BYTES ? number_at(entry->payload + index * NUMBER_BYTES) : 0;
}

void stream_free(struct stream *stream) {
    free(stream->slots);
    *stream = (struct stream){0};
}
