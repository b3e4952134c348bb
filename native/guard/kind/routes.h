/* What `ip` says of routes. */
#ifndef WULF_GUARD_KIND_ROUTES_H
#define WULF_GUARD_KIND_ROUTES_H

#include "guard/base.h"

/* Ask for routes: FAILED where what is said is none, or nothing by a program that does not even name itself.
 */
MUST_CHECK enum outcome routes_asked(struct text *said, const char *const words[]);

#endif
