#include "tracer/types.h"

#include "tracer/wrap.h"

struct last_type last_type = {.type = MPI_DATATYPE_NULL};

uint64_t type_size(MPI_Datatype type) {
    MPI_Count size = 0;
    if (type == MPI_DATATYPE_NULL || PMPI_Type_size_x(type, &size) != MPI_SUCCESS || size < 0)
        return 0;
    last_type.size = (uint64_t)size;
    __atomic_store_n(&last_type.type, type, __ATOMIC_RELAXED);
    return last_type.size;
}

/* Its handle may be another type's from now on. */
OWN(Type_free, int, (MPI_Datatype * type)) {
    __atomic_store_n(&last_type.type, MPI_DATATYPE_NULL, __ATOMIC_RELAXED);
    return real_Type_free(type);
}
