/* What was done. The last changes are kept one by one; of the confirmed ones before them `history` has, for
 * each thing, the state before the first and after the last, so that the way back to the original is exact.
 * The rest of them is in `archive`, which nothing reads. */
#ifndef WULF_GUARD_HISTORY_H
#define WULF_GUARD_HISTORY_H

#include "guard/journal.h"

/* What confirmed changes have changed, each thing once. */
struct touched {
    struct step step;           /* of the last one: its knob and value */
    const char *tx;             /* the last one */
    const char *references;     /* "history TX/saved.N TX/saved.N": what was before */
    const char *read_back;      /* the last value as it was read then; may be "" */
    struct state before, after; /* of all of them together */
    bool after_known;
    const char *boot,
        *device;        /* the last device of an interface, as it was known in which boot; "" for none */
    bool is_left;       /* nobody can set it any more */
    const char *broken; /* why it cannot be put back; NULL where it can */
};

struct all_touched {
    struct touched *at;
    size_t count;
};

/* From a change on, or since the original state. */
struct all_touched touched_since(const char *to);
/* The states that "@history TX/saved.N ..." of a step, and of those that share its state, speak of, as one.
 */
MUST_CHECK enum outcome former_states(const struct plan *plan, const struct step *step, struct state *before,
                                      struct state *after, bool *after_known);
/* Why the history cannot be trusted; NULL where it can. */
const char *damaged_history(void);
uint64_t history_through(void);
/* The way back, begun; answers "nothing" where there is none. */
void rollback(const char *tx, const char *owner, int64_t deadline_s, const char *to);
/* Keep it small. */
void forget(void);
void condense(void);

void status(void);
void leaves(const char *tx);
void abandon(const char *tx);
const char *value_now(const struct step *step);

#endif
