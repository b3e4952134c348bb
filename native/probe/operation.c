#include "probe/operation.h"

#include <stdlib.h>
#include <string.h>

#include "core/number.h"

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
    const size_t length = strcspn(name, ":");
    for (size_t i = 0; i < count; i++)
        if (strlen(registered[i]->name) == length && memcmp(registered[i]->name, name, length) == 0)
            return registered[i];
    return NULL;
}

int operation_parameter(const char *name, uint64_t *parameter) {
    const struct parameter *takes = &operation_find(name)->parameter;
    const char *given = strchr(name, ':');
    *parameter = takes->usual;
    if (given == NULL)
        return 0;
    given++;
    if (takes->name == NULL || number_parse(given, strlen(given), parameter) != 0)
        return -1;
    return *parameter >= takes->low && *parameter <= takes->high ? 0 : -1;
}

const struct operation *operation_at(size_t index) { return index < count ? registered[index] : NULL; }
