/* Lines of docs/protocol.md that all programs print. Each function that writes returns 0, or -1 with errno.
 */
#ifndef WULF_LINES_H
#define WULF_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/clock.h"
#include "core/failure.h"
#include "core/histogram.h"
#include "core/node.h"
#include "core/record.h"

#define WULF_PROTOCOL 1

enum { LIMIT_NAME_BYTES = 128 };

/* A size up to which the MPI library treats messages alike, as it calls it. */
struct limit {
    char name[LIMIT_NAME_BYTES];
    uint64_t bytes;
};

/* Who measures what, and where. */
struct introduction {
    const char *program;
    const char *mpi;          /* the library's own version; NULL without one */
    const char *operation;    /* NULL for a server */
    const struct node *nodes; /* one for each rank */
    size_t node_count;
    const struct limit *eager_limits; /* of the library */
    size_t eager_limit_count;
    bool yields;
    const char *thread_level; /* of MPI; NULL without it */
    const char *filesystem;   /* of the directory of files; NULL without one */
    uint64_t seed;
    uint16_t port; /* of a server, else 0 */
    struct clock_info clock;
};

int line_hello(const struct introduction *introduction);
int line_end(double elapsed_s);
int line_failure(const struct failure *failure, int fd);
/* The line of line_failure as text; its length, or 0 when it does not fit. */
size_t line_failure_text(const struct failure *failure, char *text, size_t capacity);
/* A line that this or another rank has made. */
int line_copy(const char *text, size_t length);
/* Close an object that was begun, write it as a line, and free it. */
int line_write(struct record *record, int fd);

/* A list of (value, count), ascending. */
void record_histogram(struct record *record, const char *key, const struct histogram *histogram);

#endif
