#include "tracer/tracer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "tracer/checksum.h"

struct tracer tracer;
_Thread_local bool tracer_is_inside __attribute__((tls_model("initial-exec")));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* How many threads are within MPI; above that how often one has come in. */
static atomic_ullong within;
enum { COMING_IN_BITS = 32 };
#define COMING_IN (UINT64_C(1) << COMING_IN_BITS)
static uint32_t threads_of(uint64_t state) { return (uint32_t)state; }
static uint32_t entries_of(uint64_t state) { return (uint32_t)(state >> COMING_IN_BITS); }

/* Time in which two or more were: less each time that it began, more each time that it ended [ticks]. So it
 * does not matter in which order two threads get here. */
static atomic_ullong overlap;
static struct trace_threads counted; /* under the lock; times in ticks */
static _Thread_local struct {
    uint32_t number;  /* from 1 on */
    uint32_t entries; /* with its own */
    bool is_beside;   /* another was within MPI as it came in */
} own;

void tracer_enter_shared(void) {
    const uint64_t before = atomic_fetch_add(&within, COMING_IN + 1);
    own.entries = entries_of(before) + 1;
    own.is_beside = threads_of(before) > 0;
    if (own.is_beside)
        tracer_mark(TRACE_THREADS);
    if (threads_of(before) == 1)
        atomic_fetch_sub(&overlap, ticks_now());
}

/* Where a call of this thread is counted; NULL for threads beyond those that have a place. */
static struct trace_thread *own_place(void) {
    if (own.number == 0) {
        own.number = ++counted.threads;
        if (own.number <= TRACE_THREADS_NAMED)
            pthread_getname_np(pthread_self(), counted.of[own.number - 1].name, sizeof counted.of->name);
    }
    return own.number <= TRACE_THREADS_NAMED ? &counted.of[own.number - 1] : NULL;
}

void tracer_leave_shared(uint64_t took) {
    const uint64_t before = atomic_fetch_sub(&within, 1);
    if (threads_of(before) == 2)
        atomic_fetch_add(&overlap, ticks_now());
    pthread_mutex_lock(&lock);
    const bool overlaps = own.is_beside || entries_of(before) != own.entries;
    struct trace_thread *place = own_place();
    if (place != NULL)
        place->calls++;
    if (!overlaps)
        return;
    counted.overlapping_ns += took;
    if (place == NULL)
        return;
    place->overlapping++;
    place->overlapping_ns += took;
}

void tracer_tell_threads(void) {
    if (stream.header == NULL || !tracer.is_shared)
        return;
    pthread_mutex_lock(&lock);
    struct trace_threads told = counted;
    pthread_mutex_unlock(&lock);
    uint64_t together = atomic_load(&overlap);
    if (threads_of(atomic_load(&within)) > 1) /* they still are */
        together += ticks_now();
    told.overlap_ns = ticks_to_ns(together);
    told.overlapping_ns = ticks_to_ns(told.overlapping_ns);
    for (int one = 0; one < TRACE_THREADS_NAMED; one++)
        told.of[one].overlapping_ns = ticks_to_ns(told.of[one].overlapping_ns);
    told.checksum = checksum(0, &told, sizeof told);
    memcpy((char *)stream.header + TRACE_THREADS_OFFSET, &told, sizeof told);
}

void tracer_hold(void) { pthread_mutex_lock(&lock); }

void tracer_unlock(void) { pthread_mutex_unlock(&lock); }

void tracer_mark(enum trace_unsound what) {
    if (stream.header != NULL)
        __atomic_fetch_or(&stream.header->unsound, UINT64_C(1) << what, __ATOMIC_RELAXED);
}

void tracer_add_with(struct trace_record record, const void *payload, uint64_t bytes) {
    if (tracer.compute_ns > UINT32_MAX || tracer.call_ns > UINT32_MAX) {
        const struct trace_record longer = {
            .kind = TRACE_TIME, .flags = TRACE_PAYLOAD, .peer = TRACE_NOBODY, .bytes = tracer.compute_ns};
        stream_append(&longer, &tracer.call_ns, sizeof tracer.call_ns);
    } else {
        record.compute_ns = (uint32_t)tracer.compute_ns;
        record.call_ns = (uint32_t)tracer.call_ns;
    }
    record.flags |= tracer.failed;
    if (bytes > 0)
        record.flags |= TRACE_PAYLOAD;
    stream_append(&record, payload, bytes);
    tracer.compute_ns = tracer.call_ns = 0;
}

void tracer_other(const char *name) { tracer_file(name, 0); }

void tracer_file(const char *name, uint64_t bytes) {
    tracer_add_with((struct trace_record){.kind = TRACE_OTHER, .peer = TRACE_NOBODY, .bytes = bytes}, name,
                    strlen(name));
}
