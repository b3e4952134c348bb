/* Two settings in turn. While a change is open, a part of it can be made alone (`part`), from one trial to
 * the next; and the probe has either of two parts made, again and again within one launch (`alternate`): it
 * writes the part's letter to TX.ask and reads `ok`, or what went wrong, from TX.answer. What is not of that
 * part has its original value. The journal holds the state before all of it and the deadline goes on, so
 * whatever ends this, everything is put back. The lock is held for each request. */
#ifndef WULF_GUARD_ALTERNATION_H
#define WULF_GUARD_ALTERNATION_H

#include "guard/base.h"

/* Steps are numbers with commas, 0 for none. */
void part(const char *tx, const char *steps);
void alternate(const char *tx, const char *a, const char *b);
/* What answers the probe: does not return. */
_Noreturn void alternating(const char *tx, const char *a, const char *b);
void end_alternation(const char *tx);
/* Which steps are made, with commas between. */
void made_are(const char *tx, const char *steps);

#endif
