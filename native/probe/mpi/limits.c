#include "probe/mpi/limits.h"

#include <mpi.h>
#include <stdbool.h>
#include <string.h>

/* One number of the library; false where it is none, or below zero. */
static bool read_number(int index, MPI_Datatype type, uint64_t *number) {
    union {
        int as_int;
        unsigned as_unsigned;
        unsigned long as_long;
        unsigned long long as_long_long;
    } value;
    MPI_T_cvar_handle handle;
    int count = 0;
    memset(&value, 0, sizeof value);
    if (MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) != MPI_SUCCESS)
        return false;
    const bool read = count == 1 && MPI_T_cvar_read(handle, &value) == MPI_SUCCESS;
    MPI_T_cvar_handle_free(&handle);
    if (type == MPI_INT)
        *number = value.as_int < 0 ? 0 : (uint64_t)value.as_int;
    else if (type == MPI_UNSIGNED)
        *number = value.as_unsigned;
    else if (type == MPI_UNSIGNED_LONG)
        *number = value.as_long;
    else
        *number = value.as_long_long;
    return read && (type != MPI_INT || value.as_int >= 0);
}

static bool is_number(MPI_Datatype type) {
    return type == MPI_INT || type == MPI_UNSIGNED || type == MPI_UNSIGNED_LONG ||
           type == MPI_UNSIGNED_LONG_LONG;
}

/* Open MPI's rendezvous limits say how much of a message goes ahead of the rest, not when it does. */
static bool is_eager_limit(const char *name) {
    return (strstr(name, "eager_limit") != NULL && strstr(name, "rndv") == NULL) ||
           strstr(name, "EAGER_MAX") != NULL;
}

size_t limits_read(struct limit *limits, size_t most) {
    int provided = 0;
    int variables = 0;
    size_t found = 0;
    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS)
        return 0;
    if (MPI_T_cvar_get_num(&variables) != MPI_SUCCESS)
        variables = 0;
    for (int index = 0; index < variables && found < most; index++) {
        struct limit *limit = &limits[found];
        int length = LIMIT_NAME_BYTES;
        int verbosity = 0;
        int binding = 0;
        int scope = 0;
        MPI_Datatype type = MPI_DATATYPE_NULL;
        if (MPI_T_cvar_get_info(index, limit->name, &length, &verbosity, &type, NULL, NULL, NULL, &binding,
                                &scope) != MPI_SUCCESS ||
            binding != MPI_T_BIND_NO_OBJECT || !is_eager_limit(limit->name) || !is_number(type))
            continue;
        if (read_number(index, type, &limit->bytes))
            found++;
    }
    MPI_T_finalize();
    return found;
}
