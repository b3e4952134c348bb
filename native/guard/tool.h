/* Other programs: by absolute path from a fixed list, with nothing of the caller's, and a limit of time and
 * of output. */
#ifndef WULF_GUARD_TOOL_H
#define WULF_GUARD_TOOL_H

#include "guard/base.h"

/* What would be set is printed instead of done: `explain`. What is only asked is asked. */
extern bool explaining;
/* Who only looks waits less, so that who puts something back is not kept waiting. */
extern bool only_looking;

/* Where a program is; NULL where there is none that is root's alone. */
const char *tool_path(const char *name);
/* Ask something: DONE when it ended with 0, its output, without warnings, then being in `said`. */
MUST_CHECK enum outcome tool_ask(struct text *said, const char *const words[]);
/* The same, whatever its exit code is, which is in `code`; what it complains of comes after what it says.
 * FAILED when it did not end by itself. */
MUST_CHECK enum outcome tool_code(struct text *said, int *code, const char *const words[]);
/* Set something: DONE when it ended with 0; otherwise what it said is the complaint. */
MUST_CHECK enum outcome tool_run(const char *input, const char *const words[]);
/* The same; what it said is in `said`, too. */
MUST_CHECK enum outcome tool_said(struct text *said, const char *input, const char *const words[]);

/* Ask one that may have nothing to say: then it must say which program it is, or it is one that died without
 * a word. */
MUST_CHECK enum outcome tool_list(struct text *said, const char *which, const char *const words[]);

#define LIST(said, which, ...) tool_list(said, which, (const char *const[]){__VA_ARGS__, NULL})
#define ASK(said, ...) tool_ask(said, (const char *const[]){__VA_ARGS__, NULL})
#define RUN(...) tool_run(NULL, (const char *const[]){__VA_ARGS__, NULL})
#define RUN_WITH(input, ...) tool_run(input, (const char *const[]){__VA_ARGS__, NULL})

/* Write a value to a file of /proc or /sys. */
MUST_CHECK enum outcome set_value(const char *path, const char *value);

/* In the environment of every tool of this guard, so that those of one that was killed are found. */
void mark_tools(const char *mark);
/* End the tools that a guard with this mark has left. */
void end_marked(const char *mark);
/* A process of our own program that outlives us: FAILED where it cannot be started. */
MUST_CHECK enum outcome start_own(const char *const words[]);

#endif
