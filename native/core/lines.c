#include "core/lines.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int line_write(struct record *record, int fd) {
    record_close(record, '}');
    const int status = record_write(record, fd);
    record_free(record);
    return status;
}

static void add_nodes(struct record *record, const struct node *nodes, size_t count) {
    record_key(record, "hosts");
    record_open(record, '[');
    for (size_t i = 0; i < count; i++)
        record_string(record, nodes[i].host);
    record_close(record, ']');
    record_key(record, "cpus");
    record_open(record, '[');
    for (size_t i = 0; i < count; i++) {
        record_open(record, '[');
        for (unsigned cpu = 0; cpu < NODE_CPU_BYTES * 8; cpu++)
            if (node_has_cpu(&nodes[i], cpu))
                record_unsigned(record, cpu);
        record_close(record, ']');
    }
    record_close(record, ']');
}

static void add_eager_limits(struct record *record, const struct limit *limits, size_t count) {
    record_key(record, "eager_limits");
    record_open(record, '{');
    for (size_t i = 0; i < count; i++)
        record_pair_unsigned(record, limits[i].name, limits[i].bytes);
    record_close(record, '}');
}

int line_hello(const struct introduction *introduction) {
    struct record record = {0};
    record_begin(&record, "hello");
    record_pair_unsigned(&record, "protocol", WULF_PROTOCOL);
    record_pair_string(&record, "version", WULF_VERSION);
    record_pair_string(&record, "program", introduction->program);
    record_key(&record, "mpi");
    if (introduction->mpi == NULL)
        record_null(&record);
    else
        record_string(&record, introduction->mpi);
    add_eager_limits(&record, introduction->eager_limits, introduction->eager_limit_count);
    if (introduction->operation == NULL) {
        record_pair_string(&record, "role", "server");
        record_pair_unsigned(&record, "port", introduction->port);
    } else {
        record_pair_string(&record, "op", introduction->operation);
        record_pair_unsigned(&record, "seed", introduction->seed);
    }
    add_nodes(&record, introduction->nodes, introduction->node_count);
    record_pair_bool(&record, "yields", introduction->yields);
    if (introduction->thread_level != NULL)
        record_pair_string(&record, "thread_level", introduction->thread_level);
    if (introduction->filesystem != NULL)
        record_pair_string(&record, "filesystem", introduction->filesystem);
    record_pair_unsigned(&record, "pid", (uint64_t)getpid());
    record_key(&record, "clock");
    record_open(&record, '{');
    record_pair_string(&record, "source", WULF_CLOCK_NAME);
    record_pair_double(&record, "resolution_ns", introduction->clock.resolution_ns, 1);
    record_pair_double(&record, "cost_ns", introduction->clock.cost_ns, 1);
    record_close(&record, '}');
    return line_write(&record, STDOUT_FILENO);
}

void record_histogram(struct record *record, const char *key, const struct histogram *histogram) {
    size_t cursor = 0;
    uint64_t value_ns = 0;
    uint64_t count = 0;
    record_key(record, key);
    record_open(record, '[');
    while (histogram_next(histogram, &cursor, &value_ns, &count)) {
        record_open(record, '[');
        record_unsigned(record, value_ns);
        record_unsigned(record, count);
        record_close(record, ']');
    }
    record_close(record, ']');
}

int line_copy(const char *text, size_t length) {
    struct record record = {.text = malloc(length + 1), .length = length, .capacity = length + 1};
    record.failed = record.text == NULL;
    if (!record.failed)
        memcpy(record.text, text, length);
    const int status = record_write(&record, STDOUT_FILENO);
    record_free(&record);
    return status;
}

int line_end(double elapsed_s) {
    struct record record = {0};
    record_begin(&record, "end");
    record_pair_double(&record, "elapsed_s", elapsed_s, 3);
    return line_write(&record, STDOUT_FILENO);
}

static void make_failure(struct record *record, const struct failure *failure) {
    record_begin(record, "error");
    record_pair_string(record, "code", failure->code);
    record_pair_string(record, "peer", failure->peer);
    record_pair_string(record, "message", failure->message);
}

int line_failure(const struct failure *failure, int fd) {
    struct record record = {0};
    make_failure(&record, failure);
    return line_write(&record, fd);
}

size_t line_failure_text(const struct failure *failure, char *text, size_t capacity) {
    struct record record = {0};
    make_failure(&record, failure);
    record_close(&record, '}');
    size_t length = 0;
    if (!record.failed && record.length + 1 <= capacity) {
        memcpy(text, record.text, record.length);
        text[record.length] = '\n';
        length = record.length + 1;
    }
    record_free(&record);
    return length;
}
