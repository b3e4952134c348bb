#include "core/options.h"

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

/* 0, or -1 when that is no value of the option. */
static int set(const struct option *option, const char *given) {
    uint64_t value = 0;
    if (given == NULL)
        return -1;
    if (option->text != NULL)
        *option->text = given;
    else if (option->texts != NULL && option->texts->count < OPTION_TEXTS_MOST)
        option->texts->items[option->texts->count++] = given;
    else if (option->value != NULL && number_parse(given, strlen(given), &value) == 0 &&
             value >= option->low && value <= option->high)
        *option->value = value;
    else
        return -1;
    return 0;
}

static void complain(const struct option *option, char *message, size_t capacity) {
    if (option->value != NULL)
        snprintf(message, capacity, "%s takes a number from %" PRIu64 " to %" PRIu64, option->name,
                 option->low, option->high);
    else if (option->texts != NULL)
        snprintf(message, capacity, "%s takes a text, and %d of them at most", option->name,
                 OPTION_TEXTS_MOST);
    else
        snprintf(message, capacity, "%s: a value must follow", option->name);
}

enum options_result options_read(const struct option *options, size_t count, int argc, char **argv,
                                 char *message, size_t capacity) {
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0)
            return OPTIONS_HELP;
        if (strcmp(argv[i], "--version") == 0)
            return OPTIONS_VERSION;
        const struct option *option = find(options, count, argv[i]);
        if (option == NULL) {
            snprintf(message, capacity, "there is no option %.60s; --help shows all", argv[i]);
            return OPTIONS_WRONG;
        }
        if (option->flag != NULL) {
            *option->flag = true;
        } else if (set(option, ++i < argc ? argv[i] : NULL) != 0) {
            complain(option, message, capacity);
            return OPTIONS_WRONG;
        }
    }
    return OPTIONS_RUN;
}

void options_help(const struct option *options, size_t count, const char *program, const char *what) {
    printf("%s: %s\n\n", program, what);
    for (size_t i = 0; i < count; i++) {
        printf("  %-12s %s", options[i].name, options[i].help);
        if (options[i].value != NULL)
            printf(" (%" PRIu64 ")", *options[i].value);
        printf("\n");
    }
}
