/* What was left open: by an earlier boot, a controller or a guard that died. */
#ifndef WULF_GUARD_RECOVER_H
#define WULF_GUARD_RECOVER_H

#include "guard/base.h"

/* Ends it; what is stuck at once, too, where that is asked for. */
void recover(bool also_stuck);
/* Nothing of a change that is over may be left; true when no change is open. */
bool tidy(void);
bool is_late(const char *tx);
/* When something is to be done about a change, in seconds since boot. */
int64_t due_at(const char *tx);
/* Twice as much later each time. */
void retry_later(const char *tx);
/* A unit that undoes at boot, as long as a change is open that outlives one. */
MUST_CHECK enum outcome recover_at_boot(void);

#endif
