#include "tracer/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tracer/checksum.h"

/* The file grows by so much at a time; the window on it is as large. */
enum { WINDOW_BYTES = 1 << 20 };
#define WINDOW_SLOTS ((uint64_t)WINDOW_BYTES / TRACE_SLOT_BYTES)

static struct {
    int file;
    char path[PATH_MAX];
    struct trace_header *header; /* of the file; NULL: not open */
    unsigned char *window;
    uint64_t first;   /* slot of the window */
    uint64_t slots;   /* written, also within a record that is not whole yet */
    uint64_t allowed; /* slots that the file may have */
} own = {.file = -1};

const char *stream_path(void) { return own.path; }

struct trace_header *stream_header(void) {
    return own.header;
}

/* Have the window begin at a slot. The room is taken on the disk, or a full disk would end the program. */
static int show(uint64_t first) {
    const off_t offset = (off_t)(TRACE_HEADER_BYTES + first * TRACE_SLOT_BYTES);
    const int code = posix_fallocate(own.file, offset, WINDOW_BYTES);
    if (code != 0) {
        errno = code;
        return -1;
    }
    /* All pages at once: one after the other they cost more than what is written to them. */
    void *window =
        mmap(NULL, WINDOW_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, own.file, offset);
    if (window == MAP_FAILED)
        return -1;
    if (own.window != NULL)
        munmap(own.window, WINDOW_BYTES);
    own.window = window;
    own.first = first;
    return 0;
}

int stream_open(const char *directory, int rank, int ranks, uint64_t limit) {
    snprintf(own.path, sizeof own.path, "%s/rank.%06d", directory, rank);
    own.file = open(own.path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (own.file < 0 || ftruncate(own.file, TRACE_HEADER_BYTES) != 0)
        return -1;
    void *header = mmap(NULL, TRACE_HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, own.file, 0);
    if (header == MAP_FAILED)
        return -1;
    struct trace_header *made = header;
    memcpy(made->magic, TRACE_STREAM_MAGIC, sizeof made->magic);
    made->version = TRACE_VERSION;
    made->header_bytes = TRACE_HEADER_BYTES;
    made->slot_bytes = TRACE_SLOT_BYTES;
    made->rank = rank;
    made->ranks = ranks;
    made->state = TRACE_RUNNING;
    own.allowed = limit > TRACE_HEADER_BYTES ? (limit - TRACE_HEADER_BYTES) / TRACE_SLOT_BYTES : 0;
    if (show(0) != 0)
        return -1;
    own.header = made;
    return 0;
}

static void put(const void *data, uint64_t bytes) {
    const unsigned char *from = data;
    uint64_t place = (own.slots - own.first) * TRACE_SLOT_BYTES;
    while (bytes > 0) {
        const uint64_t part = bytes < WINDOW_BYTES - place ? bytes : WINDOW_BYTES - place;
        memcpy(own.window + place, from, part);
        from += part;
        bytes -= part;
        own.slots += (part + TRACE_SLOT_BYTES - 1) / TRACE_SLOT_BYTES;
        place = 0;
        if (bytes > 0 && show(own.slots) != 0)
            return; /* its slots stay invalid */
    }
}

static bool have_room(uint64_t slots) {
    if (own.header->state == TRACE_FULL || slots > own.allowed - own.slots)
        return false;
    return own.slots - own.first < WINDOW_SLOTS || show(own.slots) == 0;
}

void stream_append(const struct trace_record *record, const void *payload, uint64_t bytes) {
    if (own.header == NULL)
        return;
    if (bytes == 0 && own.slots - own.first < WINDOW_SLOTS && own.slots < own.allowed &&
        own.header->state == TRACE_RUNNING) {
        /* Nearly all of them. */
        memcpy(own.window + (own.slots - own.first) * TRACE_SLOT_BYTES, record, sizeof *record);
        __atomic_store_n(&own.header->slots, ++own.slots, __ATOMIC_RELEASE);
        return;
    }
    const uint64_t before = own.slots;
    const uint64_t rest = bytes > 0 ? sizeof bytes + bytes : 0;
    const uint64_t slots = 1 + (rest + TRACE_SLOT_BYTES - 1) / TRACE_SLOT_BYTES;
    if (have_room(slots)) {
        put(record, sizeof *record);
        if (bytes > 0) {
            /* The length and what follows it are one stretch of slots: its first is put together. */
            unsigned char head[TRACE_SLOT_BYTES] = {0};
            const uint64_t first = bytes < sizeof head - sizeof bytes ? bytes : sizeof head - sizeof bytes;
            memcpy(head, &bytes, sizeof bytes);
            memcpy(head + sizeof bytes, payload, first);
            if (own.slots - own.first < WINDOW_SLOTS || show(own.slots) == 0)
                put(head, sizeof head);
            if (bytes > first && own.slots == before + 2 &&
                (own.slots - own.first < WINDOW_SLOTS || show(own.slots) == 0))
                put((const unsigned char *)payload + first, bytes - first);
        }
        if (own.slots == before + slots) {
            __atomic_store_n(&own.header->slots, own.slots, __ATOMIC_RELEASE);
            return;
        }
        own.slots = before;
    }
    own.header->state = TRACE_FULL;
    own.header->lost++;
}

static int sum_up(void) {
    enum { PART = 1 << 16 };
    static unsigned char part[PART];
    uint32_t sum = 0;
    uint64_t left = own.header->slots * TRACE_SLOT_BYTES;
    off_t offset = TRACE_HEADER_BYTES;
    while (left > 0) {
        const ssize_t got = pread(own.file, part, left < PART ? left : PART, offset);
        if (got <= 0)
            return -1;
        sum = checksum(sum, part, (size_t)got);
        left -= (uint64_t)got;
        offset += got;
    }
    own.header->checksum = sum;
    return 0;
}

int stream_finish(uint64_t run_ns) {
    if (own.header == NULL)
        return 0;
    int code = sum_up();
    own.header->run_ns = run_ns;
    if (own.header->state == TRACE_RUNNING)
        own.header->state = TRACE_FINISHED;
    if (ftruncate(own.file, (off_t)(TRACE_HEADER_BYTES + own.header->slots * TRACE_SLOT_BYTES)) != 0)
        code = -1;
    munmap(own.window, WINDOW_BYTES);
    munmap(own.header, TRACE_HEADER_BYTES);
    own.header = NULL;
    own.window = NULL;
    return close(own.file) == 0 ? code : -1;
}
