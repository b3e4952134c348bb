/* What a caller says: the verb, its words, and the plan on standard input. All of it is read before any lock
 * is asked for. */
#ifndef WULF_GUARD_WORDS_H
#define WULF_GUARD_WORDS_H

#include "guard/step.h"

/* Whether words have the forms of a verb, such as "change owner number"; the complaint says what is wrong. */
MUST_CHECK enum outcome check_words(const char *forms, const char *const words[], uid_t caller);
int64_t number_of(const char *word);
/* Standard input to its end. */
MUST_CHECK enum outcome read_plan_from_input(uid_t caller, struct plan *plan);

#endif
