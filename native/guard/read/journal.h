/* The grammars of the journal's files; only what the guard itself writes is accepted. */
#ifndef WULF_GUARD_READ_JOURNAL_H
#define WULF_GUARD_READ_JOURNAL_H

#include "guard/base.h"
#include "guard/read/cursor.h"

enum { JOURNAL_FORMAT = 3 };

struct about_text {
    uint64_t format, number, uid, steps;
    struct bytes owner, boot, at;
    struct bytes rest; /* lines after these: "device" or "what" */
};

/* format, number, owner, uid, boot, at, steps: in this order. DONE, or FAILED where it is not so; `format` is
 * set in both cases, to 0 where there is none. */
MUST_CHECK enum outcome read_about(struct bytes text, struct about_text *about);

struct sum_line {
    struct bytes digest, name;
    uint64_t size;
};
/* The lines of `sums` without the last one, which seals them; SOUND when it does. */
MUST_CHECK enum outcome read_sums(struct bytes text, struct bytes *lines, uint64_t *count);
MUST_CHECK enum outcome read_sum_line(struct bytes *rest, struct sum_line *line);

/* WORD [TAB why]: the words of a state. */
MUST_CHECK enum outcome read_tx_state(struct bytes text, struct bytes *word, struct bytes *why);

#endif
