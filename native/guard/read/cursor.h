/* Bytes from outside are read through these: a piece is never outside its bytes, nothing is allocated, no NUL
 * is relied on. */
#ifndef WULF_GUARD_READ_CURSOR_H
#define WULF_GUARD_READ_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes {
    const char *at;
    size_t size;
};

/* Take what is before a mark, and the mark, from the rest; false, and nothing taken, where there is none. */
bool cut(struct bytes *rest, char mark, struct bytes *piece);
/* A line without its newline; the last one may have none. False at the end. */
bool next_line(struct bytes *rest, struct bytes *line);
/* A word between spaces and tabs. False where there is no more. */
bool next_word(struct bytes *rest, struct bytes *word);
bool bytes_are(struct bytes bytes, const char *text);
bool bytes_begin(struct bytes bytes, const char *text);
bool bytes_end(struct bytes bytes, const char *text);
bool bytes_same(struct bytes one, struct bytes other);
/* Where a text begins in them; their size where it does not. */
size_t bytes_find(struct bytes bytes, const char *text);
/* Without spaces and tabs at both ends. */
struct bytes bytes_trimmed(struct bytes bytes);
struct bytes bytes_from(struct bytes bytes, size_t at);
/* Decimal digits without a sign or a leading zero, at most `most`. */
bool bytes_number(struct bytes bytes, uint64_t most, uint64_t *number);
/* Whether each is a letter, a digit, or one of `others`; false for nothing. */
bool bytes_only(struct bytes bytes, const char *others);
/* Whether each is printable ASCII; false for nothing. */
bool bytes_printable(struct bytes bytes);
/* A name of a network interface, as it may be a part of a path. */
bool is_interface(struct bytes bytes);
/* A name of a change: it becomes a path. */
bool is_change(struct bytes bytes);

#endif
