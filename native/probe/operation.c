#include "probe/operation.h"

#include <stdlib.h>
#include <string.h>

static const struct operation *registered[OPERATIONS_MAX];
static size_t count;

void operation_register(const struct operation *operation) {
    if (count == OPERATIONS_MAX)
        abort(); /* before main: a mistake of whoever added the file */
    size_t place = count++;
    for (; place > 0 && strcmp(registered[place - 1]->name, operation->name) > 0; place--)
        registered[place] = registered[place - 1];
    registered[place] = operation;
}

const struct operation *operation_find(const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(registered[i]->name, name) == 0)
            return registered[i];
    return NULL;
}

const struct operation *operation_at(size_t index) { return index < count ? registered[index] : NULL; }
