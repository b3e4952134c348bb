/* A change: begun, made and kept. */
#ifndef WULF_GUARD_CHANGE_H
#define WULF_GUARD_CHANGE_H

#include "guard/journal.h"

#define FULL_STATE "cannot write to " STATE_PLACE ": is the disk full?"

/* Who called: 0 is root. */
extern uid_t caller;

void begin(const char *tx, const char *owner, int64_t deadline_s, struct plan *plan);
void apply(const char *tx);
void swap(const char *old, const char *tx, const char *owner, int64_t deadline_s, struct plan *plan);
void extend(const char *tx, int64_t deadline_s);
void confirm(const char *tx);
/* Ends with the right code unless the change is in one of these states and not overdue. */
void require_open(const char *tx, const char *words);
/* Who is not root ends only what is his. */
void require_own(const char *tx);
/* Set the value of a step: FAILED with a complaint. */
MUST_CHECK enum outcome put_step(const char *tx, const struct plan *plan, const struct step *step);
/* All of it as it is now; FAILED where it cannot be read. */
MUST_CHECK enum outcome save_step(const struct step *step, struct state *state);
/* Record what a step that was put has made; without it all that was saved is put back. */
void save_after(const char *tx, const struct step *step);
/* Nothing has been changed yet: the change goes, and the program ends. */
_Noreturn void not_begun(const char *tx, const char *why);
void close_change(const char *tx);
/* Why an interface of the plan is not the one that the change began with; NULL where all are. */
const char *another_device(const char *tx, const struct plan *plan);
/* The same of one step; `why` says why where it is so. */
bool device_is_another(const char *tx, const struct step *step, const char **why);
/* Whether no other step moves what this one sets: then what somebody sets while others are at work, which may
 * take long, is told from ours. */
bool is_apart(const struct plan *plan, size_t i);
/* Once for all steps: systemd reads its files anew. */
void settle_units(const struct plan *plan);

#endif
