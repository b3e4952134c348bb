/* What every part of the guard stands on: outcomes, memory, texts. The guard ends soon, so that nothing is
 * given back. */
#ifndef WULF_GUARD_BASE_H
#define WULF_GUARD_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 0 is not success: memory of zeros, a child that died, an answer that is missing are never a yes. */
enum outcome { FAILED = 0, DONE = 0x3c, GRANTED = 0x5a, SOUND = 0xa5 };

#define MUST_CHECK __attribute__((warn_unused_result))
#define LIKE_PRINTF(at) __attribute__((format(printf, at, (at) + 1)))
#define LIKE_PRINTF_LIST(at) __attribute__((format(printf, at, 0)))
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Exit codes: see main.c. */
enum { EXIT_DONE = 0, EXIT_ERROR = 1, EXIT_BUSY = 10, EXIT_FAILED = 11, EXIT_LATE = 12, EXIT_STUCK = 13 };

/* End with EXIT_ERROR: what is open stays so, and is put back by who comes next. */
_Noreturn void cannot_go_on(const char *what);

/* --- memory and texts --- */

/* Zeroed memory; ends the program with EXIT_ERROR where there is none. */
void *take(size_t size);
/* A copy that ends with a NUL. */
char *keep(const char *at, size_t size);
char *keep_text(const char *text);
/* What printf would print, kept. */
char *print(const char *format, ...) LIKE_PRINTF(1);

struct text {
    char *at; /* NULL while it is empty; ends with a NUL otherwise */
    size_t size, room;
};

void text_add(struct text *text, const char *at, size_t size);
void text_word(struct text *text, const char *word);
void text_print(struct text *text, const char *format, ...) LIKE_PRINTF(2);
/* The text as a string: "" where nothing was added. */
const char *text_string(const struct text *text);

/* The same on one line: control characters become spaces; at most so many bytes. */
char *one_line(const char *text, size_t most);
/* With another word wherever that one is in it. */
char *replaced(const char *text, const char *what, const char *with);
bool starts_with(const char *text, const char *start);
bool ends_with(const char *text, const char *end);
bool is_same(const char *one, const char *other);
/* Whether a word is one of those, separated by spaces. */
bool is_word_of(const char *word, const char *words);

/* --- why something failed --- */

/* Note why and return FAILED, so that a function can `return complain(…)`. */
enum outcome complain(const char *format, ...) LIKE_PRINTF(1);
/* Why, or `otherwise` where nobody said it; the next one begins anew. */
const char *complaint(const char *otherwise);
void forgive(void);

/* --- time: since boot, of a clock that nobody sets --- */

int64_t now_ms(void);
int64_t now_s(void);
const char *boot_id(void);
/* "2026-01-01T00:00:00Z": for people only. */
const char *wall_time(void);
void wait_ms(int ms);

#endif
