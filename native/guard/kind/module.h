#ifndef WULF_GUARD_KIND_MODULE_H
#define WULF_GUARD_KIND_MODULE_H

#include "guard/base.h"

/* The module that drives an interface. */
MUST_CHECK enum outcome module_of(const char *interface, const char **module);

#endif
