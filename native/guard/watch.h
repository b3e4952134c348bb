/* Who sees to it that what nobody confirms is undone: three processes, each of which does it when its time
 * has come (one after the other), and starts the others again. Any one that is left does all of it, whatever
 * becomes of /run/wulf.
 *
 * They sleep until the earliest deadline, or until a guard asks them (over a socket, which tells who really
 * answers): somebody measures on this node meanwhile. */
#ifndef WULF_GUARD_WATCH_H
#define WULF_GUARD_WATCH_H

#include "guard/base.h"

/* All of them are there and have seen the deadlines as they are; those that do not answer are started anew.
 */
MUST_CHECK enum outcome watched(void);
/* Let them see that something has changed; nobody waits for that. */
void look_again(void);
bool is_role(const char *word);
/* Be one of them: does not return. */
_Noreturn void watch(const char *role);
/* Undo what is overdue: what a watcher starts. */
void overdue(void);

#endif
