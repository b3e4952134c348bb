/* States: what a kind of access can be put back to, item by item. */
#ifndef WULF_GUARD_ITEMS_H
#define WULF_GUARD_ITEMS_H

#include "guard/base.h"

/* Items that change by themselves (a timer, a delay of an adaptive driver) are for people: never compared or
 * put back. */
enum { ITEM_VOLATILE = 1, ITEM_ABSENT = 2 /* of what is put back: it is taken away */ };

struct item {
    const char *key, *value;
    unsigned flags;
};

struct state {
    struct item *at;
    size_t count, room;
};

void state_add(struct state *state, const char *key, const char *value);
void state_add_flagged(struct state *state, const char *key, const char *value, unsigned flags);
/* The value of a key; NULL where there is none. */
const char *state_value(const struct state *state, const char *key);
bool state_same(const struct state *one, const struct state *other);
/* The same, and so is what is for people. */
bool state_identical(const struct state *one, const struct state *other);

/* As a file: a line for each item, and a last one that says how many there are and their digest. */
void state_write(const struct state *state, struct text *text);
/* Accepts only what `state_write` writes. */
MUST_CHECK enum outcome state_read(const struct text *text, struct state *state);
/* For people: "key value; key value". */
char *state_shown(const struct state *state);

/* Two changes after each other as one: what comes back is what was before the first, but where somebody else
 * has set an item between them, that. `removes` is that of the kind, and may be NULL. */
void states_fold(struct state *before, struct state *after, bool (*removes)(const char *key),
                 const struct state *next_before, const struct state *next_after);

#endif
