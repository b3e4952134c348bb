/* Room for what is received: pieces are taken, and all of it is free again when none is in use. */
#ifndef WULF_EMULATE_SHELF_H
#define WULF_EMULATE_SHELF_H

#include <stddef.h>

enum { SHELF_ALIGN = 64 };

struct shelf {
    size_t used, most; /* `most` is what it needs at a time */
    size_t open;
};

/* Where a piece begins. */
static inline size_t shelf_take(struct shelf *shelf, size_t bytes) {
    const size_t at = shelf->used;
    shelf->used += (bytes + SHELF_ALIGN - 1) / SHELF_ALIGN * SHELF_ALIGN;
    if (shelf->used > shelf->most)
        shelf->most = shelf->used;
    shelf->open++;
    return at;
}

static inline void shelf_give(struct shelf *shelf) {
    if (shelf->open > 0 && --shelf->open == 0)
        shelf->used = 0;
}

#endif
