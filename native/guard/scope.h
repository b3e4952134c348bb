/* What an administrator has granted to who is not root: /etc/wulf/grant. */
#ifndef WULF_GUARD_SCOPE_H
#define WULF_GUARD_SCOPE_H

#include "guard/base.h"

#include <sys/types.h>

#define SCOPE_PLACE "/etc/wulf/grant"

/* Whether this user may call at all; where the file is missing or damaged nobody may. */
MUST_CHECK enum outcome scope_grants_user(uid_t uid);
MUST_CHECK enum outcome scope_grants_interface(const char *interface);

/* The longest that who is not root may have a node, or leave a change open [s]. */
enum { LONGEST_LEASE_S = 7200, LONGEST_DEADLINE_S = 86400 };

#endif
