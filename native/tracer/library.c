#include "tracer/library.h"

#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "tracer/ticks.h"
#include "tracer/wrap.h"

/* More than any library's MPI_MAX_LIBRARY_VERSION_STRING. */
enum { VERSION_ROOM = 1 << 14, NAME_ROOM = 256 };
typedef int version_function(char *, int *);

extern const struct wrapped __start_wulf_wrapped[], __stop_wulf_wrapped[];

/* The program asks whether the library has a call, finds ours, and calls it. */
static int is_missing(void) { return MPI_ERR_OTHER; }

__attribute__((constructor)) static void find_wrapped(void) {
    for (const struct wrapped *one = __start_wulf_wrapped; one < __stop_wulf_wrapped; one++) {
        void *found = dlsym(RTLD_NEXT, one->name);
        if (found == NULL)
            *(int (**)(void))one->function = is_missing;
        else
            memcpy(one->function, &found, sizeof found);
    }
    ticks_begin();
}

static void name_of(void *function, char *name) {
    static char text[VERSION_ROOM];
    int length = 0;
    version_function *version = NULL;
    memcpy(&version, &function, sizeof version);
    if (version != NULL)
        version(text, &length);
    text[strcspn(text, "\n")] = '\0';
    snprintf(name, NAME_ROOM, "%.*s", NAME_ROOM - 1, text);
}

static void *of_program(void) { return dlsym(RTLD_NEXT, "PMPI_Get_library_version"); }

const char *library_name(void) {
    static char name[NAME_ROOM];
    name_of(of_program(), name);
    return name;
}

static bool has_standard_abi(void *function) {
    Dl_info where;
    return dladdr(function, &where) != 0 && strstr(where.dli_fname, "_abi.so") != NULL;
}

bool library_fits(const char **built_with) {
    static char name[NAME_ROOM];
    Dl_info here;
    void *self =
        dladdr(__start_wulf_wrapped, &here) != 0 ? dlopen(here.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    void *own = self == NULL ? NULL : dlsym(self, "PMPI_Get_library_version");
    void *other = of_program();
    *built_with = "";
    if (own == NULL || own == other)
        return true;
    name_of(own, name);
    *built_with = name;
    /* "Open MPI v4.1.4, …", "MPICH Version: 4.0.2": versions of one kind have the same handles. */
    const size_t kind = strcspn(name, " ");
    return strncmp(name, library_name(), kind) == 0 && has_standard_abi(own) == has_standard_abi(other);
}
