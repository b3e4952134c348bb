/* What a plan says of a file that the guard makes itself: `made:CHANGE:INTERFACE|PART,CARD/KNOB=VALUE|...`,
 * where an item may be without a card or a part, or be one word. */
#ifndef WULF_GUARD_READ_MADE_H
#define WULF_GUARD_READ_MADE_H

#include "guard/base.h"
#include "guard/read/cursor.h"

enum { MADE_ITEMS = 128 };

struct made_item {
    struct bytes part, card, knob, value; /* without a value: a word, as the knob */
};

struct made {
    struct bytes change, interface;
    struct made_item items[MADE_ITEMS];
    size_t count;
};

MUST_CHECK enum outcome read_made(struct bytes text, struct made *made);

#endif
