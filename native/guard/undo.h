/* A change is put back: what it has changed, item by item, and nothing else. */
#ifndef WULF_GUARD_UNDO_H
#define WULF_GUARD_UNDO_H

#include "guard/journal.h"

/* Puts back what it has changed: EXIT_DONE or EXIT_STUCK; ends with EXIT_LATE for one that is confirmed. */
MUST_CHECK int undo(const char *tx, const char *why);
/* Steps in the order in which they are put back: files and what makes others anew first, otherwise the last
 * one first.
 */
const struct step **undo_order(const struct plan *plan);

#endif
