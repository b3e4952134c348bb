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
/* Whether all that a file is of is of interfaces that are granted: those that its name, its lines, its driver
 * or its file of networkd are of. */
MUST_CHECK enum outcome made_within_scope(const char *path, const struct kept *kept);
/* The same of what is there, and of what was before, which a rollback puts there. */
MUST_CHECK enum outcome stored_within_scope(const struct step *step, const struct state *before);
/* Whether what is there is one that was made here, or nothing. */
bool is_ours_or_absent(const char *path, const struct kept *now);

#endif
