/* From the file of a trace, which only rank 0 reads, to the stream of every rank. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emulate/stream.h"

/* Not a message of the pattern: it has the tag that control has in the probe, too. */
enum { TAG_CONTROL = 2, CHUNK_BYTES = 1 << 26 };

/* A file that is mapped. */
struct mapped {
    const unsigned char *bytes;
    uint64_t size;
};

static int map(const char *path, struct mapped *mapped, struct failure *failure) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    void *start = MAP_FAILED;
    if (file >= 0 && fstat(file, &status) == 0 && status.st_size > 0)
        start = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    const int error = errno;
    if (file >= 0)
        close(file);
    if (start == MAP_FAILED)
        return failure_set(failure, "system", "", "cannot read %.300s: %s", path, strerror(error));
    *mapped = (struct mapped){start, (uint64_t)status.st_size};
    return 0;
}

static int damaged(const char *path, const char *what, struct failure *failure) {
    return failure_set(failure, "trace", "", "%.300s: %s", path, what);
}

static int check_container(const char *path, const struct mapped *mapped, int ranks,
                           struct failure *failure) {
    struct trace_container head;
    if (mapped->size < sizeof head)
        return damaged(path, "not a trace", failure);
    memcpy(&head, mapped->bytes, sizeof head);
    if (memcmp(head.magic, TRACE_CONTAINER_MAGIC, sizeof head.magic) != 0 || head.version != TRACE_VERSION)
        return damaged(path, "not a trace, or one of another version", failure);
    if (head.ranks > (mapped->size - sizeof head) / sizeof(struct trace_part))
        return damaged(path, "cut off in the list of its ranks", failure);
    if (head.ranks != (uint32_t)ranks)
        return failure_set(failure, "ranks", "", "%.300s has %" PRIu32 " ranks, the job has %d", path,
                           head.ranks, ranks);
    return 0;
}

/* The slots of one rank, within the file. */
static int find(const char *path, const struct mapped *mapped, int rank, const unsigned char **slots,
                uint64_t *count, struct failure *failure) {
    struct trace_part part;
    struct trace_header header;
    memcpy(&part, mapped->bytes + sizeof(struct trace_container) + (size_t)rank * sizeof part, sizeof part);
    if (part.offset > mapped->size || part.bytes > mapped->size - part.offset ||
        part.bytes < TRACE_HEADER_BYTES)
        return damaged(path, "a stream is cut off", failure);
    memcpy(&header, mapped->bytes + part.offset, sizeof header);
    if (memcmp(header.magic, TRACE_STREAM_MAGIC, sizeof header.magic) != 0 ||
        header.version != TRACE_VERSION || header.header_bytes != TRACE_HEADER_BYTES ||
        header.slot_bytes != TRACE_SLOT_BYTES)
        return damaged(path, "a stream is not one, or of another version", failure);
    if (header.slots > (part.bytes - TRACE_HEADER_BYTES) / TRACE_SLOT_BYTES)
        return damaged(path, "a stream has fewer records than it says", failure);
    *slots = mapped->bytes + part.offset + TRACE_HEADER_BYTES;
    *count = header.slots;
    return 0;
}

static int hold(struct stream *stream, uint64_t count, struct failure *failure) {
    stream->count = count;
    stream->slots = malloc(count * TRACE_SLOT_BYTES + 1);
    if (stream->slots != NULL)
        return 0;
    return failure_set(failure, "system", "", "no memory for %" PRIu64 " operations", count);
}

static int said(int code, struct failure *failure) {
    return code == MPI_SUCCESS ? 0
                               : failure_set(failure, "mpi", "", "a stream could not be sent to its rank");
}

static int give(const unsigned char *slots, uint64_t count, int rank, struct failure *failure) {
    int code = MPI_Send(&count, 1, MPI_UINT64_T, rank, TAG_CONTROL, MPI_COMM_WORLD);
    const uint64_t bytes = count * TRACE_SLOT_BYTES;
    for (uint64_t at = 0; at < bytes && code == MPI_SUCCESS; at += CHUNK_BYTES) {
        const uint64_t rest = bytes - at;
        code = MPI_Send(slots + at, (int)(rest < CHUNK_BYTES ? rest : CHUNK_BYTES), MPI_BYTE, rank,
                        TAG_CONTROL, MPI_COMM_WORLD);
    }
    return said(code, failure);
}

static int take(struct stream *stream, struct failure *failure) {
    uint64_t count = 0;
    int code = MPI_Recv(&count, 1, MPI_UINT64_T, 0, TAG_CONTROL, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS || hold(stream, count, failure) != 0)
        return said(code, failure), -1;
    const uint64_t bytes = count * TRACE_SLOT_BYTES;
    for (uint64_t at = 0; at < bytes && code == MPI_SUCCESS; at += CHUNK_BYTES) {
        const uint64_t rest = bytes - at;
        code = MPI_Recv(stream->slots + at, (int)(rest < CHUNK_BYTES ? rest : CHUNK_BYTES), MPI_BYTE, 0,
                        TAG_CONTROL, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return said(code, failure);
}

static int read_and_give(const char *path, struct stream *stream, int ranks, struct failure *failure) {
    struct mapped mapped = {0};
    if (map(path, &mapped, failure) != 0)
        return -1;
    int result = check_container(path, &mapped, ranks, failure);
    for (int rank = 0; rank < ranks && result == 0; rank++) {
        const unsigned char *slots = NULL;
        uint64_t count = 0;
        result = find(path, &mapped, rank, &slots, &count, failure);
        if (result == 0 && rank > 0)
            result = give(slots, count, rank, failure);
        else if (result == 0 && (result = hold(stream, count, failure)) == 0)
            memcpy(stream->slots, slots, count * TRACE_SLOT_BYTES);
    }
    munmap((void *)(uintptr_t)mapped.bytes, mapped.size);
    return result;
}

int stream_deliver(const char *path, struct stream *stream, struct failure *failure) {
    int rank = 0;
    int ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    return rank == 0 ? read_and_give(path, stream, ranks, failure) : take(stream, failure);
}
