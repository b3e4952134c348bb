/* Files that keep settings over a boot: made here, of the settings that a plan names. No text of a caller's
 * is in them. */
#ifndef WULF_GUARD_KIND_MADE_H
#define WULF_GUARD_KIND_MADE_H

#include "guard/kind/keeping.h"
#include "guard/step.h"

/* The first line of each of them begins so; of a script it is the second. */
#define MADE_MARK "# Written by wulf (change "

bool is_made(const char *value);
/* Whether the step is one that may be granted to whom these interfaces (words with spaces between) are: such
 * a file, of settings of the table, or that it goes. */
MUST_CHECK enum outcome made_checked(const struct step *step, const char **interfaces);
/* What is to be written. */
MUST_CHECK enum outcome made_file(const struct step *step, struct kept *kept);
/* Whether what is there is one that was made here, or nothing. */
bool is_ours_or_absent(const char *path, const struct kept *now);

#endif
