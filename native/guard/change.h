/* A change: begun, made, kept or put back. */
#ifndef WULF_GUARD_CHANGE_H
#define WULF_GUARD_CHANGE_H

#include "guard/journal.h"

/* Who called: 0 is root. */
extern uid_t caller;

void begin(const char *tx, const char *owner, int64_t deadline_s, struct plan *plan);
void apply(const char *tx);
void swap(const char *old, const char *tx, const char *owner, int64_t deadline_s, struct plan *plan);
void extend(const char *tx, int64_t deadline_s);
void confirm(const char *tx);
/* Puts back what it has changed: EXIT_DONE or EXIT_STUCK; ends with EXIT_LATE for one that is confirmed. */
MUST_CHECK int undo(const char *tx, const char *why);
/* Ends with the right code unless the change is in one of these states and not overdue. */
void require_open(const char *tx, const char *words);
/* Who is not root ends only what is his. */
void require_own(const char *tx);
/* Set the value of a step: FAILED with a complaint. */
MUST_CHECK enum outcome put_step(const char *tx, const struct step *step);
/* Record what a step that was put has made; without it all that was saved is put back. */
void save_after(const char *tx, const struct step *step);
/* Nothing has been changed yet: the change goes, and the program ends. */
_Noreturn void not_begun(const char *tx, const char *why);
void close_change(const char *tx);
/* Steps in the order in which they are put back: what makes others anew first, otherwise the last one first.
 */
const struct step **undo_order(const struct plan *plan);
/* Why an interface of the plan is not the one that the change began with; NULL where all are. */
const char *another_device(const char *tx, const struct plan *plan);

#endif
