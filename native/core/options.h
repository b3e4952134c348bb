/* Options of a command line: --name VALUE, or --name alone. */
#ifndef WULF_OPTIONS_H
#define WULF_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OPTION_TEXTS_MOST = 256 };

/* What was given, in order. */
struct option_texts {
    size_t count;
    const char *items[OPTION_TEXTS_MOST];
};

struct option {
    const char *name; /* --steps */
    const char *help;
    /* One of these; they hold what is used where it is not given. */
    uint64_t *value;            /* a whole number from `low` to `high` */
    const char **text;          /* any text */
    struct option_texts *texts; /* any text, again and again */
    bool *flag;                 /* nothing follows */
    uint64_t low, high;
};

#define OPTION_NUMBER(NAME, VALUE, LOW, HIGH, HELP)                                                          \
    {.name = NAME, .help = HELP, .value = VALUE, .low = LOW, .high = HIGH}

enum options_result { OPTIONS_RUN, OPTIONS_HELP, OPTIONS_VERSION, OPTIONS_WRONG };

/* Read the command line. What is wrong with it is in `message`. */
enum options_result options_read(const struct option *options, size_t count, int argc, char **argv,
                                 char *message, size_t capacity);
/* Print what they are to standard output. */
void options_help(const struct option *options, size_t count, const char *program, const char *what);

#endif
