/* The MPI library of the program. */
#ifndef WULF_TRACER_LIBRARY_H
#define WULF_TRACER_LIBRARY_H

#include <stdbool.h>

/* What it calls itself, in one line. */
const char *library_name(void);
/* Whether it is of the kind that this tracer was built with; otherwise handles would be misunderstood. */
bool library_fits(const char **built_with);

#endif
