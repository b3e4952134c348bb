#include "probe/mpi/parameters.h"

#include <inttypes.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/record.h"

enum { NAME_BYTES = 256, ABOUT_BYTES = 2048, TEXT_BYTES = 4096, NUMBER_BYTES = 64 };

struct variable {
    int index;
    MPI_Datatype type;
    MPI_T_enum values; /* MPI_T_ENUM_NULL for any */
    char name[NAME_BYTES];
    char about[ABOUT_BYTES];
};

union value {
    int as_int;
    unsigned as_unsigned;
    unsigned long as_long;
    unsigned long long as_long_long;
    double as_double;
    bool as_bool;
    char as_text[TEXT_BYTES];
};

/* The parameter of a number; false for one that is none, or is that of an object. */
static bool find(int index, struct variable *variable) {
    int name_length = sizeof variable->name;
    int about_length = sizeof variable->about;
    int verbosity = 0;
    int binding = 0;
    int scope = 0;
    variable->index = index;
    return MPI_T_cvar_get_info(index, variable->name, &name_length, &verbosity, &variable->type,
                               &variable->values, variable->about, &about_length, &binding,
                               &scope) == MPI_SUCCESS &&
           binding == MPI_T_BIND_NO_OBJECT;
}

static bool read_value(const struct variable *variable, union value *value) {
    MPI_T_cvar_handle handle;
    int count = 0;
    memset(value, 0, sizeof *value);
    if (MPI_T_cvar_handle_alloc(variable->index, NULL, &handle, &count) != MPI_SUCCESS)
        return false;
    const bool fits = variable->type == MPI_CHAR ? count < TEXT_BYTES : count == 1;
    const bool read = fits && MPI_T_cvar_read(handle, value) == MPI_SUCCESS;
    MPI_T_cvar_handle_free(&handle);
    return read;
}

/* A number that is not below zero. */
static bool as_size(MPI_Datatype type, const union value *value, uint64_t *size) {
    if (type == MPI_INT)
        *size = value->as_int < 0 ? 0 : (uint64_t)value->as_int;
    else if (type == MPI_UNSIGNED)
        *size = value->as_unsigned;
    else if (type == MPI_UNSIGNED_LONG)
        *size = value->as_long;
    else if (type == MPI_UNSIGNED_LONG_LONG)
        *size = value->as_long_long;
    else
        return false;
    return type != MPI_INT || value->as_int >= 0;
}

/* Open MPI's rendezvous limits say how much of a message goes ahead of the rest, not when it does. */
static bool is_eager_limit(const char *name) {
    return (strstr(name, "eager_limit") != NULL && strstr(name, "rndv") == NULL) ||
           strstr(name, "EAGER_MAX") != NULL;
}

static int count_all(void) {
    int variables = 0;
    return MPI_T_cvar_get_num(&variables) == MPI_SUCCESS ? variables : 0;
}

size_t limits_read(struct limit *limits, size_t most) {
    static struct variable variable;
    static union value value;
    int provided = 0;
    size_t found = 0;
    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS)
        return 0;
    const int count = count_all();
    for (int index = 0; index < count && found < most; index++) {
        if (!find(index, &variable) || !is_eager_limit(variable.name) || !read_value(&variable, &value) ||
            !as_size(variable.type, &value, &limits[found].bytes))
            continue;
        snprintf(limits[found++].name, LIMIT_NAME_BYTES, "%.*s", LIMIT_NAME_BYTES - 1, variable.name);
    }
    MPI_T_finalize();
    return found;
}

/* The value in words; false where it has a type that nothing here needs. */
static bool as_text(MPI_Datatype type, const union value *value, char text[TEXT_BYTES]) {
    uint64_t size = 0;
    if (type == MPI_CHAR)
        snprintf(text, TEXT_BYTES, "%.*s", TEXT_BYTES - 1, value->as_text);
    else if (type == MPI_DOUBLE)
        snprintf(text, TEXT_BYTES, "%g", value->as_double);
    else if (type == MPI_C_BOOL)
        snprintf(text, TEXT_BYTES, "%d", value->as_bool);
    else if (as_size(type, value, &size))
        snprintf(text, TEXT_BYTES, "%" PRIu64, size);
    else if (type == MPI_INT)
        snprintf(text, TEXT_BYTES, "%d", value->as_int);
    else if (type == MPI_LONG)
        snprintf(text, TEXT_BYTES, "%ld", (long)value->as_long);
    else if (type == MPI_LONG_LONG || type == MPI_INT64_T)
        snprintf(text, TEXT_BYTES, "%lld", (long long)value->as_long_long);
    else
        return false;
    return true;
}

/* What it may be, where it is one of a few: number and name. */
static void add_values(struct record *record, MPI_T_enum values) {
    char name[NAME_BYTES];
    int length = sizeof name;
    int count = 0;
    record_key(record, "values");
    record_open(record, '{');
    if (values != MPI_T_ENUM_NULL && MPI_T_enum_get_info(values, &count, name, &length) == MPI_SUCCESS) {
        for (int item = 0; item < count; item++) {
            int value = 0;
            char number[NUMBER_BYTES];
            length = sizeof name;
            if (MPI_T_enum_get_item(values, item, &value, name, &length) != MPI_SUCCESS)
                continue;
            snprintf(number, sizeof number, "%d", value);
            record_pair_string(record, number, name);
        }
    }
    record_close(record, '}');
}

static int print(const struct variable *variable, const char *text, int fd) {
    struct record record = {0};
    record_begin(&record, "parameter");
    record_pair_string(&record, "name", variable->name);
    record_pair_string(&record, "value", text);
    record_pair_string(&record, "about", variable->about);
    add_values(&record, variable->values);
    record_close(&record, '}');
    return record_write(&record, fd);
}

static int print_library(int fd) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING + 1];
    struct record record = {0};
    int length = 0;
    memset(version, 0, sizeof version);
    MPI_Get_library_version(version, &length);
    record_begin(&record, "library");
    record_pair_string(&record, "version", version);
    record_close(&record, '}');
    return record_write(&record, fd);
}

int parameters_print(int fd) {
    static struct variable variable;
    static union value value;
    static char text[TEXT_BYTES];
    int provided = 0;
    int result = print_library(fd);
    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS)
        return -1;
    const int count = count_all();
    for (int index = 0; index < count && result == 0; index++)
        if (find(index, &variable) && read_value(&variable, &value) && as_text(variable.type, &value, text))
            result = print(&variable, text, fd);
    MPI_T_finalize();
    return result;
}
