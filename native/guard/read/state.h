/* The grammar of a state: line = key TAB value [TAB "volatile"] LF, with \t, \n and \\ for what would end
 * them; then "end" TAB how many TAB the SHA-256 of all before it LF. */
#ifndef WULF_GUARD_READ_STATE_H
#define WULF_GUARD_READ_STATE_H

#include "guard/base.h"
#include "guard/read/cursor.h"

struct state_line {
    struct bytes key, value; /* escaped as they are written */
    bool is_volatile;
};

/* The body and the end of a state's file; SOUND when the digest is that of the body. */
MUST_CHECK enum outcome read_state_end(struct bytes text, struct bytes *body, uint64_t *count);
/* The next line of the body: DONE, or FAILED where it is none. */
MUST_CHECK enum outcome read_state_line(struct bytes *rest, struct state_line *line);
/* Without escapes, into `plain`, which is as large as `escaped`; its size in `size`. */
MUST_CHECK enum outcome unescape(struct bytes escaped, char *plain, size_t *size);

#endif
