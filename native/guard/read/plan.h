/* The grammar of a plan: line = knob TAB kind TAB interface TAB target TAB value LF. */
#ifndef WULF_GUARD_READ_PLAN_H
#define WULF_GUARD_READ_PLAN_H

#include "guard/base.h"
#include "guard/read/cursor.h"

enum { PLAN_LINES = 256 };

struct plan_line {
    struct bytes knob, kind, interface, target, value;
};

/* GRANTED when all of it is a plan of 1 to PLAN_LINES lines, each of which sets something else. */
MUST_CHECK enum outcome read_plan(struct bytes text, struct plan_line lines[PLAN_LINES], size_t *count);
/* One line, without its newline. */
MUST_CHECK enum outcome read_plan_line(struct bytes text, struct plan_line *line);

#endif
