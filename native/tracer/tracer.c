#include "tracer/tracer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

struct tracer tracer;
_Thread_local bool tracer_is_inside __attribute__((tls_model("initial-exec")));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int inside; /* threads */

void tracer_enter_shared(void) {
    if (atomic_fetch_add(&inside, 1) > 0)
        tracer_mark(TRACE_THREADS);
}

void tracer_lock(void) {
    atomic_fetch_sub(&inside, 1);
    pthread_mutex_lock(&lock);
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
