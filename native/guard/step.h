/* A step of a plan, and what grants it. */
#ifndef WULF_GUARD_STEP_H
#define WULF_GUARD_STEP_H

#include "guard/read/plan.h"
#include "guard/table.h"

#include <sys/types.h>

struct step {
    size_t number; /* from 1 */
    const char *knob, *interface, *target, *value;
    const struct known_kind *known; /* NULL where this guard knows no such kind */
    const char *kind_name;
};

struct plan {
    struct step *steps;
    size_t count;
    const char *text; /* as it is in the journal */
};

/* What `put` takes; only `grant` makes one. */
struct granted {
    const struct step *step;
    enum outcome mark;
};

/* What a step is of: a row, a file that lasts (no row), or whether the unit of a row starts at boot. */
struct listed {
    enum step_form { OF_ROW = 1, OF_FILE, OF_UNIT } form;
    const struct known_knob *row;
    const char *interfaces; /* those that it takes, with spaces between */
};

MUST_CHECK enum outcome plan_read(struct bytes text, struct plan *plan);
/* Whether it is of what may be granted to who is not root; its kind is known. Looks at nothing but the step.
 */
MUST_CHECK enum outcome in_catalogue(const struct step *step, struct listed *listed);
/* Whether who called may have it set; the complaint says why not. */
MUST_CHECK enum outcome grant(const struct step *step, uid_t caller, struct granted *granted);

#endif
