/* Files that last: read, written as a whole or not at all, and changed line by line where others have changed
 * them, too. */
#ifndef WULF_GUARD_KIND_KEEPING_H
#define WULF_GUARD_KIND_KEEPING_H

#include "guard/file.h"
#include "guard/items.h"
#include "guard/read/cursor.h"

struct kept {
    enum { KEPT_ABSENT, KEPT_LINK, KEPT_FILE } is;
    const char *link; /* where a link goes; of what is absent the uppermost directory that is, too, or "" */
    unsigned mode, uid, gid;
    int64_t seconds, nanoseconds; /* negative seconds: now */
    struct text content;
};

/* What is there; FAILED for what is neither a file nor a link nor absent. */
MUST_CHECK enum outcome kept_read(const char *path, struct kept *kept);
/* As a value: absent:DIRECTORY, link:TARGET or file:MODE,UID,GID:TIME:BASE64; and back. */
char *kept_word(const struct kept *kept);
/* Whether it is what a word says; of nothing, whatever directories there are: an undo that was ended may have
 * made them. */
bool kept_is(const struct kept *kept, const char *word);
MUST_CHECK enum outcome kept_parse(const char *word, struct kept *kept);
/* As a plan says it: absent, link:TARGET or file:MODE:BASE64. */
MUST_CHECK enum outcome kept_parse_plan(const char *word, struct kept *kept);
MUST_CHECK enum outcome kept_write(const char *path, const struct kept *kept);
/* A text, whoever has the file. */
MUST_CHECK enum outcome write_kept(const char *path, const char *text, unsigned mode);

/* Whether each line of a file (NAME = VALUE, a comment, words) says something by itself, and is an item. */
bool has_lines(const struct kept *kept);
/* The name of a line: what is before its =, or all of it. */
char *line_name(struct bytes line);
/* The lines as items; those of some names alone, where names are given. */
void add_lines(const struct kept *kept, const char *names, struct state *state);
/* Whether a file has the lines of these items; an item that is to go, or has no value, is none of them. */
bool has_items(const struct kept *kept, const struct state *items);
/* Put lines back, or take them away (ITEM_ABSENT), and leave the others as they are. */
void restore_lines(struct kept *kept, const struct state *items);

#endif
