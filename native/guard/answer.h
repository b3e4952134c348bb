/* What is answered: built in memory, printed when no lock is held any more. And the log, which is for people.
 */
#ifndef WULF_GUARD_ANSWER_H
#define WULF_GUARD_ANSWER_H

#include "guard/base.h"

/* A line of the answer, as it is. */
void say_line(const char *format, ...) LIKE_PRINTF(1);
/* A line of fields with tabs between, each made one line; the list ends with NULL. */
void say_fields(const char *const fields[]);
#define SAY(...) say_fields((const char *const[]){__VA_ARGS__, NULL})
/* Take what was answered so far, or put it back to a size. */
size_t answer_size(void);
const char *answer_from(size_t size);
void answer_cut(size_t size);
/* Give the locks back, print it, and end. */
_Noreturn void finish(int code);
/* The same with a line "error". */
_Noreturn void fail(int code, const char *format, ...) LIKE_PRINTF(2);

/* The log; a change and a verb for it. `point` is a place where a build for tests may meet a fault. */
void note(const char *format, ...) LIKE_PRINTF(1);
void note_about(const char *verb, const char *change);
void note_nothing(void);
void note_rotate(void);

#endif
