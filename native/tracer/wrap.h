/* A wrapper of each call: one line says what the program gives and what is recorded, the preprocessor makes
 * the function. It has both names of the call, with and without the P: the Fortran interface of Open MPI
 * calls the one with it, that of MPICH the other. The library's own is looked up when this library is loaded.
 */
#ifndef WULF_TRACER_WRAP_H
#define WULF_TRACER_WRAP_H

#include <mpi.h>

#include "tracer/tracer.h"

#define EXPORT __attribute__((visibility("default")))
#define STRIP(...) __VA_ARGS__
#define TEXT(name) TEXT_OF(name)
#define TEXT_OF(name) #name

/* A function of the library; all of them are found in a section of their own. */
struct wrapped {
    const char *name;
    void *function; /* its pointer */
};

#define OWN(name, type, declared)                                                                            \
    static type(*real_##name) declared;                                                                      \
    static const struct wrapped wrapped_##name                                                               \
        __attribute__((section("wulf_wrapped"), used)) = {"PMPI_" #name, &real_##name};                      \
    EXPORT type PMPI_##name declared;                                                                        \
    EXPORT type MPI_##name declared __attribute__((alias("PMPI_" #name)));                                   \
    EXPORT type PMPI_##name declared

/* `before` comes before the library's own call, `recorded` after it. */
#define WRAP_AFTER(name, declared, given, before, recorded) WRAP_AS(name, declared, given, before, recorded)
#define WRAP_AS(name, declared, given, before, recorded)                                                     \
    OWN(name, int, declared) {                                                                               \
        if (!tracer_enter())                                                                                 \
            return real_##name given;                                                                        \
        before;                                                                                              \
        const uint64_t entered = ticks_now();                                                                \
        const int code = real_##name given;                                                                  \
        tracer_left(entered, code);                                                                          \
        recorded;                                                                                            \
        tracer_done();                                                                                       \
        return code;                                                                                         \
    }
#define WRAP(name, declared, given, recorded) WRAP_AFTER(name, declared, given, (void)0, recorded)
/* Only its time and its name are known … */
#define NAMED(name, declared, given) WRAP(name, declared, given, tracer_other("MPI_" TEXT(name)))
/* … and how many bytes of a file it is about … */
#define MOVED(name, declared, given)                                                                         \
    WRAP(name, declared, given, tracer_file("MPI_" TEXT(name), bytes_of(count, type)))
/* … and what of it a replay cannot follow. */
#define UNSOUND(name, declared, given, what)                                                                 \
    WRAP(name, declared, given, (tracer_mark(what), tracer_other("MPI_" TEXT(name))))

#endif
