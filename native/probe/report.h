/* Lines of docs/protocol.md that only the probe prints: 0, or -1 with errno. */
#ifndef WULF_REPORT_H
#define WULF_REPORT_H

#include "core/lines.h"
#include "probe/arguments.h"
#include "probe/operation.h"
#include "probe/sweep.h"

int report_list(void);
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
/* The line of how ranks were scheduled. */
void record_scheduling(struct record *record, const struct scheduling *scheduling, struct scope scope);
/* The line of the references. */
void record_references(struct record *record, const struct references *references, struct scope scope);

#endif
