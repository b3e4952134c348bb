/* The lines of docs/protocol.md. Each function writes one line to standard output: 0, or -1 with errno. */
#ifndef WULF_REPORT_H
#define WULF_REPORT_H

#include <stddef.h>
#include <stdint.h>

#include "core/clock.h"
#include "core/failure.h"
#include "core/node.h"
#include "core/record.h"
#include "probe/arguments.h"
#include "probe/operation.h"
#include "probe/sweep.h"

#define WULF_PROTOCOL 1

/* Who measures what, and where. */
enum { LIMIT_NAME_BYTES = 128 };

/* A size up to which the MPI library treats messages alike, as it calls it. */
struct limit {
    char name[LIMIT_NAME_BYTES];
    uint64_t bytes;
};

struct introduction {
    const char *program;
    const char *mpi;          /* the library's own version; NULL without one */
    const char *operation;    /* NULL for a server */
    const struct node *nodes; /* one for each rank */
    size_t node_count;
    const struct limit *eager_limits; /* of the library */
    size_t eager_limit_count;
    bool yields;
    uint64_t seed;
    uint16_t port; /* of a server, else 0 */
    struct clock_info clock;
};

int report_list(void);
int report_hello(const struct introduction *introduction);
int report_progress(const struct progress *progress);
int report_waiting(void);
/* What of a launch a line is about. */
struct scope {
    const int *ranks; /* two of them; NULL for all */
    const char *arm;  /* letter of the setting; NULL where there is one */
};
/* The line of a cell, not written yet. */
void record_cell(struct record *record, const char *name, const struct operation *operation,
                 const struct cell *cell, struct scope scope);
/* The line of the references. */
void record_references(struct record *record, const struct references *references, struct scope scope);
/* A line that this or another rank has made. */
int report_line(const char *text, size_t length);
int report_end(double elapsed_s);
int report_failure(const struct failure *failure, int fd);

/* The line of report_failure as text; its length, or 0 when it does not fit. */
size_t report_failure_text(const struct failure *failure, char *text, size_t capacity);

#endif
