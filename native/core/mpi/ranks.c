#include "core/mpi/ranks.h"

#include <stdlib.h>
#include <string.h>

const char *library_version(char text[MPI_MAX_LIBRARY_VERSION_STRING + 1]) {
    int length = 0;
    memset(text, 0, MPI_MAX_LIBRARY_VERSION_STRING + 1);
    MPI_Get_library_version(text, &length);
    text[strcspn(text, "\n")] = '\0';
    for (char *c = text; *c != '\0'; c++)
        if (*c == '\t')
            *c = ' ';
    return text;
}

bool library_yields(void) {
    const char *openmpi = getenv("OMPI_MCA_mpi_yield_when_idle");
    return openmpi != NULL && (strcmp(openmpi, "1") == 0 || strcmp(openmpi, "true") == 0);
}

int nodes_gather(MPI_Comm comm, struct node *nodes) {
    struct node own;
    int ranks = 1;
    memset(&own, 0, sizeof own);
    node_describe(&own);
    const int code = MPI_Comm_size(comm, &ranks);
    if (code != MPI_SUCCESS || ranks == 1) {
        nodes[0] = own;
        return code;
    }
    return MPI_Allgather(&own, sizeof own, MPI_BYTE, nodes, (int)sizeof own, MPI_BYTE, comm);
}
