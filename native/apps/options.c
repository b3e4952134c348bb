#include "apps/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/number.h"

static const struct option *find(const struct option *options, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(options[i].name, name) == 0)
            return &options[i];
    return NULL;
}

enum options_result options_read(const struct option *options, size_t count, int argc, char **argv,
                                 char *message, size_t capacity) {
    for (int i = 1; i < argc; i += 2) {
        if (strcmp(argv[i], "--help") == 0)
            return OPTIONS_HELP;
        if (strcmp(argv[i], "--version") == 0)
            return OPTIONS_VERSION;
        const struct option *option = find(options, count, argv[i]);
        if (option == NULL) {
            snprintf(message, capacity, "there is no option %.60s; --help shows all", argv[i]);
            return OPTIONS_WRONG;
        }
        uint64_t value = 0;
        if (i + 1 >= argc || number_parse(argv[i + 1], strlen(argv[i + 1]), &value) != 0 ||
            value < option->low || value > option->high) {
            snprintf(message, capacity, "%s takes a number from %" PRIu64 " to %" PRIu64, option->name,
                     option->low, option->high);
            return OPTIONS_WRONG;
        }
        *option->value = value;
    }
    return OPTIONS_RUN;
}

void options_help(const struct option *options, size_t count, const char *program, const char *what) {
    printf("%s: %s\n\n", program, what);
    for (size_t i = 0; i < count; i++)
        printf("  %-12s %s (%" PRIu64 ")\n", options[i].name, options[i].help, *options[i].value);
}
