/* Bare loops: what a program of a few lines would do for the same figure. Calls of the MPI library, and a
 * clock around all iterations but the first; nothing is checked. */
#ifndef WULF_BENCH_BARE_H
#define WULF_BENCH_BARE_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

enum { WINDOW = 64, STRIDE = 128, EXCHANGES = 4 };

/* What a loop works on. */
struct loop {
    void *out, *in; /* messages; `in` has room for two */
    int size, peer;
    uint64_t left; /* iterations after this one */
    MPI_Request requests[WINDOW];
    int begun;
    MPI_Win window;
    MPI_Datatype type;
    double *memory;
    size_t at, places;
};

/* One operation; `open` and `close` may be NULL, and either side has its own iteration. */
struct bare {
    const char *operation; /* of the probe */
    void (*open)(struct loop *loop);
    double (*initiate)(struct loop *loop, uint64_t iterations);
    void (*respond)(struct loop *loop, uint64_t iterations);
    void (*close)(struct loop *loop);
};

/* NULL where there is none. */
const struct bare *bare_find(const char *operation);

#endif
