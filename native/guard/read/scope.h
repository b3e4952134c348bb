/* The grammar of /etc/wulf/grant: lines "users\tUID UID" and "interfaces\tNAME NAME", and comments. */
#ifndef WULF_GUARD_READ_SCOPE_H
#define WULF_GUARD_READ_SCOPE_H

#include "guard/base.h"
#include "guard/read/cursor.h"

struct scope {
    struct bytes users, interfaces;
};

MUST_CHECK enum outcome read_scope(struct bytes text, struct scope *scope);
bool scope_has(struct bytes words, const char *word);

#endif
