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

/* It stays in the cache of a core. */
enum { WINDOW_BYTES = 1 << 18, PAGE_BYTES = 1 << 12 };

struct stream stream;

static struct {
    int file;
    char path[PATH_MAX], tail[PATH_MAX];
    struct trace_record *window;
    size_t window_bytes;
    uint64_t first;   /* slot of the window: so many are in the file */
    uint64_t allowed; /* slots that the file may have */
} own = {.file = -1};

const char *stream_path(void) { return own.path; }

static off_t offset_of(uint64_t slot) { return (off_t)(TRACE_HEADER_BYTES + slot * TRACE_SLOT_BYTES); }

/* The slot that is written next, also within a record that is not whole yet. */
static uint64_t taken(void) { return own.first + (uint64_t)(stream.next - own.window); }

/* Have the window empty. Its room in the file is taken now, so that it can be emptied on a full disk, too; a
 * file system that cannot do that has to do without. */
static int begin_window(void) {
    const uint64_t left = own.allowed - own.first;
    const uint64_t most = own.window_bytes / TRACE_SLOT_BYTES;
    const uint64_t slots = left < most ? left : most;
    if (slots == 0) {
        errno = EFBIG;
        return -1;
    }
    if (fallocate(own.file, FALLOC_FL_KEEP_SIZE, offset_of(own.first), (off_t)(slots * TRACE_SLOT_BYTES)) !=
            0 &&
        errno != EOPNOTSUPP && errno != ENOSYS)
        return -1;
    stream.next = own.window;
    stream.end = own.window + slots;
    return 0;
}

/* Append what the window has. */
static int empty_window(void) {
    const size_t bytes = (size_t)(stream.next - own.window) * TRACE_SLOT_BYTES;
    const unsigned char *from = (const unsigned char *)own.window;
    for (size_t done = 0; done < bytes;) {
        const ssize_t wrote = pwrite(own.file, from + done, bytes - done, offset_of(own.first) + (off_t)done);
        if (wrote <= 0 && errno != EINTR)
            return -1;
        done += wrote > 0 ? (size_t)wrote : 0;
    }
    own.first = taken();
    return 0;
}

/* A file that is mapped; its room is taken, as a full disk would end the program with a signal. */
static void *map_new(const char *path, size_t bytes, int *file) {
    *file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (*file < 0)
        return NULL;
    const int code = posix_fallocate(*file, 0, (off_t)bytes);
    if (code != 0) {
        errno = code;
        return NULL;
    }
    void *place = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, *file, 0);
    return place == MAP_FAILED ? NULL : place;
}

static void describe(struct trace_header *header, int rank, int ranks) {
    memcpy(header->magic, TRACE_STREAM_MAGIC, sizeof header->magic);
    header->version = TRACE_VERSION;
    header->header_bytes = TRACE_HEADER_BYTES;
    header->slot_bytes = TRACE_SLOT_BYTES;
    header->rank = rank;
    header->ranks = ranks;
    header->state = TRACE_RUNNING;
}

/* No larger than all that may be written. */
static size_t window_bytes(void) {
    const uint64_t pages = (own.allowed * TRACE_SLOT_BYTES + PAGE_BYTES - 1) / PAGE_BYTES;
    return pages < WINDOW_BYTES / PAGE_BYTES ? (size_t)pages * PAGE_BYTES : WINDOW_BYTES;
}

int stream_open(const char *directory, int rank, int ranks, uint64_t limit) {
    int tail = -1;
    snprintf(own.path, sizeof own.path, "%s/rank.%06d", directory, rank);
    snprintf(own.tail, sizeof own.tail, "%s/rank.%06d.tail", directory, rank);
    own.allowed = limit > TRACE_HEADER_BYTES ? (limit - TRACE_HEADER_BYTES) / TRACE_SLOT_BYTES : 0;
    own.window_bytes = window_bytes();
    struct trace_header *header = map_new(own.path, TRACE_HEADER_BYTES, &own.file);
    own.window = header == NULL ? NULL : map_new(own.tail, own.window_bytes, &tail);
    if (tail >= 0)
        close(tail);
    if (own.window != NULL && begin_window() == 0) {
        describe(header, rank, ranks);
        stream.header = header;
        return 0;
    }
    const int error = errno;
    if (tail >= 0)
        unlink(own.tail);
    if (own.file >= 0)
        unlink(own.path);
    errno = error;
    return -1;
}

/* Whole slots, the last one filled up with zeros. False where there is no room. */
static bool put(const void *data, uint64_t bytes) {
    const unsigned char *from = data;
    while (bytes > 0) {
        if (stream.next == stream.end && (empty_window() != 0 || begin_window() != 0))
            return false;
        const uint64_t room = (uint64_t)(stream.end - stream.next) * TRACE_SLOT_BYTES;
        const uint64_t part = bytes < room ? bytes : room;
        const uint64_t slots = (part + TRACE_SLOT_BYTES - 1) / TRACE_SLOT_BYTES;
        stream.next[slots - 1] = (struct trace_record){0};
        memcpy(stream.next, from, part);
        stream.next += slots;
        from += part;
        bytes -= part;
    }
    return true;
}

/* The length and what follows it are one stretch of slots: its first is put together. */
static bool put_payload(const void *payload, uint64_t bytes) {
    unsigned char head[TRACE_SLOT_BYTES] = {0};
    const uint64_t room = sizeof head - sizeof bytes;
    const uint64_t first = bytes < room ? bytes : room;
    memcpy(head, &bytes, sizeof bytes);
    memcpy(head + sizeof bytes, payload, first);
    return put(head, sizeof head) && put((const unsigned char *)payload + first, bytes - first);
}

/* What was begun is not there, and nothing comes after it. */
static void stop(void) {
    stream.header->state = TRACE_FULL;
    stream.next = stream.slots > own.first ? own.window + (stream.slots - own.first) : own.window;
    stream.end = stream.next;
}

void stream_append(const struct trace_record *record, const void *payload, uint64_t bytes) {
    if (stream.header->state == TRACE_RUNNING) {
        if (put(record, sizeof *record) && (bytes == 0 || put_payload(payload, bytes))) {
            stream.slots = taken();
            __atomic_store_n(&stream.header->slots, stream.slots, __ATOMIC_RELEASE);
            return;
        }
        stop();
    }
    if (record->kind > TRACE_PHASE && !(record->flags & TRACE_NEXT))
        stream.header->lost++;
}

static int sum_up(void) {
    uint32_t sum = 0;
    uint64_t left = stream.header->slots * TRACE_SLOT_BYTES;
    off_t offset = TRACE_HEADER_BYTES;
    while (left > 0) {
        const ssize_t got =
            pread(own.file, own.window, left < own.window_bytes ? left : own.window_bytes, offset);
        if (got <= 0)
            return -1;
        sum = checksum(sum, own.window, (size_t)got);
        left -= (uint64_t)got;
        offset += got;
    }
    stream.header->checksum = sum;
    return 0;
}

/* A file system that could not take the room before has none now. */
static void give_up_window(void) {
    stream.header->lost += stream.header->slots - own.first;
    stream.header->slots = own.first;
    stream.header->state = TRACE_FULL;
}

int stream_finish(uint64_t run_ns) {
    int error = 0;
    stream.header->run_ns = run_ns;
    if (empty_window() != 0) {
        error = errno;
        give_up_window();
    }
    if (ftruncate(own.file, offset_of(stream.header->slots)) != 0 || sum_up() != 0)
        error = errno;
    if (stream.header->state == TRACE_RUNNING)
        stream.header->state = TRACE_FINISHED;
    stream.header->header_checksum = 0;
    stream.header->header_checksum = checksum(0, stream.header, sizeof *stream.header);
    munmap(own.window, own.window_bytes);
    munmap(stream.header, TRACE_HEADER_BYTES);
    stream = (struct stream){0};
    own.window = NULL;
    unlink(own.tail);
    if (close(own.file) != 0)
        error = errno;
    errno = error;
    return error == 0 ? 0 : -1;
}
