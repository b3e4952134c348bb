/* What of a change has to come back, item by item, and what somebody else has set since. */
#ifndef WULF_GUARD_BACK_H
#define WULF_GUARD_BACK_H

#include "guard/journal.h"

struct back {
    const struct step *step;
    const struct plan
        *plan; /* of the change: what another step of it sets is left to that one. May be NULL */
    struct state before, after; /* what the change has made of what */
    bool after_known;
    struct state items; /* what has to come back, with the values before */
    struct state left;  /* what is somebody else's: key → value now */
    bool at_boot;       /* it was made at an earlier boot */
    bool is_said;       /* what is left was said */
};

/* Of one step of a change: FAILED where the state before it cannot be read. */
MUST_CHECK enum outcome back_of_step(const char *tx, const struct plan *plan, const struct step *step,
                                     struct back *back);
/* Decide what has to come back by how things were when the undo began. */
void back_decide(struct back *back, const struct state *now);
/* The same by how things are now. What cannot be read is asked for once more: without it nothing tells what
 * somebody else has set, and all that the change has set comes back. */
void back_look(struct back *back);
/* Whether an item is another step's of the change: a parameter of the same group. */
bool back_is_of_another(const struct back *back, const char *key);
/* Whether all that has to come back is so; what cannot be read is not. */
bool is_back(const struct back *back);
/* Put it back; DONE when it then is. */
MUST_CHECK enum outcome put_back(struct back *back);
/* Whether all that did not come back is not there any more (a CPU that is offline), so that nobody can set
 * it: then it is said. */
bool rest_is_gone(const struct back *back);
/* What is left, in the answer and the log, once. */
void back_say_left(struct back *back);

#endif
