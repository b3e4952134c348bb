/* What somebody who is not root says is read in a process that has no rights: it hands back a record of fixed
 * size, of rows of the table and values, which is checked again here. */
#ifndef WULF_GUARD_CONFINE_H
#define WULF_GUARD_CONFINE_H

#include "guard/words.h"

/* The words of a verb, and the plan on standard input where it has one. Whatever becomes of that process but
 * a record without fault and its own exit code, FAILED. */
MUST_CHECK enum outcome read_confined(const char *forms, const char *const words[], uid_t caller,
                                      bool has_plan, struct plan *plan);

#endif
