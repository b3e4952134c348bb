#ifndef WULF_GUARD_KIND_MODULE_H
#define WULF_GUARD_KIND_MODULE_H

#include "guard/base.h"

/* The module that drives an interface. */
MUST_CHECK enum outcome module_of(const char *interface, const char **module);

/* What is known of a link whose driver is loaded anew just now, in the state's directory. */
#define UNLOADED "unloaded."

/* Drivers that a guard which was ended has unloaded: loaded again, and their links as they were. */
MUST_CHECK enum outcome modules_back(void);

#endif
