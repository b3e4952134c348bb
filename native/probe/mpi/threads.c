#include "probe/mpi/threads.h"

#include <mpi.h>
#include <stddef.h>
#include <string.h>

enum { LEVELS = 4 };

struct level {
    const char *name;
    int value;
};

static const struct level ALL[LEVELS] = {{"single", MPI_THREAD_SINGLE},
                                         {"funneled", MPI_THREAD_FUNNELED},
                                         {"serialized", MPI_THREAD_SERIALIZED},
                                         {"multiple", MPI_THREAD_MULTIPLE}};

static const struct level *find(const char *name) {
    for (size_t i = 0; i < LEVELS; i++)
        if (strcmp(ALL[i].name, name) == 0)
            return &ALL[i];
    return NULL;
}

bool threads_known(const char *name) { return find(name) != NULL; }

/* Asked at once: Open MPI says another level after MPI_T_init_thread. */
static int given;

void threads_begin(int *argc, char ***argv, const char *level) {
    const struct level *wanted = level == NULL ? NULL : find(level);
    if (wanted == NULL)
        MPI_Init(argc, argv);
    else
        MPI_Init_thread(argc, argv, wanted->value, &given);
    MPI_Query_thread(&given);
}

const char *threads_name(void) {
    for (size_t i = 0; i < LEVELS; i++)
        if (ALL[i].value == given)
            return ALL[i].name;
    return "unknown";
}
