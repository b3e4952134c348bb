/* Files of /proc and /sys, by patterns: what several kinds share. */
#ifndef WULF_GUARD_KIND_FILES_H
#define WULF_GUARD_KIND_FILES_H

#include "guard/file.h"
#include "guard/kind.h"

/* The files of a pattern, sorted; a pattern is a path in whose parts * stands for anything. */
struct names files_of(const char *pattern);
/* The same; FAILED where one may be missing. */
MUST_CHECK enum outcome all_files_of(const char *pattern, struct names *files);
/* Whether none of some patterns has a file any more; what cannot be seen is there. */
bool files_absent(const char *patterns);
/* Words of a text with spaces between. */
struct names words_of(const char *text);
/* What a file says: of "always [madvise] never" the word in brackets. */
MUST_CHECK enum outcome file_value(const char *path, char **value);
MUST_CHECK enum outcome files_save(const char *patterns, struct state *state);
MUST_CHECK enum outcome files_put(const char *patterns, const char *values);
MUST_CHECK enum outcome files_restore(const struct step *step, const struct state *items,
                                      const struct state *before, const struct state *after);
/* The values of each pattern, different ones with commas. */
MUST_CHECK enum outcome files_get(const char *patterns, struct text *value);

#endif
