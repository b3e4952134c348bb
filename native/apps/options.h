/* Options that are whole numbers: --name N. */
#ifndef WULF_APPS_OPTIONS_H
#define WULF_APPS_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

struct option {
    const char *name; /* --steps */
    uint64_t *value;  /* holds what is used where it is not given */
    uint64_t low, high;
    const char *help;
};

enum options_result { OPTIONS_RUN, OPTIONS_HELP, OPTIONS_VERSION, OPTIONS_WRONG };

/* Read the command line. What is wrong with it is in `message`. */
enum options_result options_read(const struct option *options, size_t count, int argc, char **argv,
                                 char *message, size_t capacity);
/* Print what they are to standard output. */
void options_help(const struct option *options, size_t count, const char *program, const char *what);

#endif
