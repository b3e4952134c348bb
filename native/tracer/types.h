/* Sizes of data types. */
#ifndef WULF_TRACER_TYPES_H
#define WULF_TRACER_TYPES_H

#include <mpi.h>
#include <stdint.h>

extern struct last_type {
    MPI_Datatype type; /* its size is known; none before the first */
    uint64_t size;
} last_type;

/* Look up, and remember for next time. */
uint64_t type_size(MPI_Datatype type);

/* Bytes of so many of a type, without gaps. */
static inline uint64_t bytes_of(MPI_Count count, MPI_Datatype type) {
    if (count <= 0)
        return 0;
    return (uint64_t)count *
           (__atomic_load_n(&last_type.type, __ATOMIC_RELAXED) == type ? last_type.size : type_size(type));
}

#endif
