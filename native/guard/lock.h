/* One guard at a time, and one controller. */
#ifndef WULF_GUARD_LOCK_H
#define WULF_GUARD_LOCK_H

#include "guard/base.h"

#include <sys/types.h>

/* Take the lock that goes with the process; ends with EXIT_BUSY where somebody else has it for too long.
 * `puts_back`: what only puts back goes on where nothing can be written to /run. */
void exclusively(bool puts_back);
/* Whether it is still the one that others wait for. */
bool is_exclusive(void);
/* Beside others that look, and not while a guard is at work. */
void looking(void);
/* Give it back. */
void release(void);
/* Who asks is one at a time for each user who is not root. */
void one_of(uid_t caller);
/* For the watcher: wait for the guard at work, and end it when it hangs. */
void end_who_hangs(int wait_s);
bool is_at_work(void);

/* Until the next boot, in /run/wulf. */
MUST_CHECK enum outcome keep_in_run(const char *name, const char *text);

/* The controller's lock. */
struct owner {
    bool is;
    const char *name;
    uid_t uid;
    int64_t since, until;
};
struct owner owner_now(void);
void require_owner(const char *name, uid_t caller);
MUST_CHECK enum outcome set_owner(const char *name, uid_t caller, int64_t since, int64_t until);
void unlock_owner(const char *name, uid_t uid);

#endif
