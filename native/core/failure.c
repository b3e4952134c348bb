#include "core/failure.h"

#include <stdarg.h>
#include <stdio.h>

int failure_set(struct failure *failure, const char *code, const char *peer, const char *format, ...) {
    if (failure->code[0] != '\0')
        return -1;
    va_list arguments;
    va_start(arguments, format);
    snprintf(failure->code, sizeof failure->code, "%s", code);
    snprintf(failure->peer, sizeof failure->peer, "%s", peer);
    vsnprintf(failure->message, sizeof failure->message, format, arguments);
    va_end(arguments);
    return -1;
}
