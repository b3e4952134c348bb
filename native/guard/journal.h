/* The journal: a directory per change, whose files are on the disk before what they speak of begins.
 *
 * tx/TX: plan, about, saved.N (the state before step N), after.N (when all was set), sums (digests of the
 * first three), state, values (as read back), rollback (to what), left (what is somebody else's, once an undo
 * has begun). `open.TX` beside it says that a change is open and what of. A change whose state is not
 * `confirmed` is put back. */
#ifndef WULF_GUARD_JOURNAL_H
#define WULF_GUARD_JOURNAL_H

#include "guard/file.h"
#include "guard/items.h"
#include "guard/step.h"

struct about {
    bool known;
    uint64_t format, number;
    uid_t uid;
    size_t steps;
    const char *owner, *boot, *at;
    struct state devices; /* interface → what device_identity said */
};

struct tx_state {
    const char *word; /* "none" where there is no such change, "other" for one of another version */
    const char *why;
    bool lost; /* it is known to be open by its mark alone */
};

struct tx_row {
    uint64_t number;
    const char *name;
    struct tx_state state;
};

struct tx_rows {
    struct tx_row *at;
    size_t count;
};

void require_change(const char *name);
struct about about_of(const char *tx);
struct tx_state state_of(const char *tx);
bool is_over(const char *word);
MUST_CHECK enum outcome become(const char *tx, const char *word, const char *why);
/* All changes, by number. */
struct tx_rows journal(void);
/* Names of those that are open, the last one first; `stuck` ones alone, all but these, or all. */
enum open_which { OPEN_ALL, OPEN_STUCK, OPEN_UNFINISHED };
struct names open_changes(enum open_which which);
uint64_t last_number(void);

/* --- one change --- */

MUST_CHECK enum outcome write_about(const char *tx, const char *owner, uid_t uid, const struct plan *plan);
MUST_CHECK enum outcome plan_of(const char *tx, struct plan *plan);
/* What a change is of, as far as that is known. */
MUST_CHECK enum outcome what_of(const char *tx, struct plan *plan);
MUST_CHECK enum outcome write_state(const char *tx, const char *name, size_t number,
                                    const struct state *state, bool synced);
/* What is saved of a step becomes this, once it is sealed. */
MUST_CHECK enum outcome renew_saved(const char *tx, size_t number, const struct state *state);
MUST_CHECK enum outcome read_saved(const char *tx, size_t number, struct state *state);
/* The state after it; false where that is not known. */
bool read_after(const char *tx, size_t number, struct state *state);
/* How a step was left when a part without it was made; whether that is known. */
bool read_rest(const char *tx, size_t number, struct state *state);
void discard(const char *tx);
/* Its values are left as they are, for good. */
MUST_CHECK enum outcome give_up_journal(const char *tx);

/* --- whether it can be trusted --- */

MUST_CHECK enum outcome seal(const char *tx, const struct plan *plan);

struct soundness {
    size_t verified, wanted; /* how many files are as they were written, of how many */
    const char *damaged;     /* the names of the others, with spaces between; "" for none */
    const char *untrusted;   /* why nothing at all can be put back; NULL when each step can tell for itself */
};
struct soundness soundness_of(const char *tx);
bool is_sound(const struct soundness *soundness);
bool is_damaged(const struct soundness *soundness, size_t number);

#endif
