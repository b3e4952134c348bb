/* Before anything else: what a caller left (descriptors, environment, limits, signals) is made harmless. */
#ifndef WULF_GUARD_SETTLE_H
#define WULF_GUARD_SETTLE_H

#include "guard/base.h"

#include <sys/types.h>

/* Who called: 0 is root, others came by way of sudo; UID_UNKNOWN where sudo's word is no number. */
#define UID_UNKNOWN ((uid_t) - 1)

/* Ends the program with EXIT_ERROR where any of it cannot be done. Returns who called. What only explains
 * needs no root. */
uid_t settle(bool as_root);
/* What is only explained to somebody who came by way of sudo is what anybody could read. */
MUST_CHECK enum outcome give_up_rights(uid_t caller);

#endif
