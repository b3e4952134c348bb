/* How far threads may call the MPI library: what it was asked for, and what it gave. */
#ifndef WULF_MPI_THREADS_H
#define WULF_MPI_THREADS_H

#include <stdbool.h>

/* Whether there is a level of this name. */
bool threads_known(const char *name);

/* MPI_Init, or MPI_Init_thread where a level is named. */
void threads_begin(int *argc, char ***argv, const char *level);

/* The level that is in force. */
const char *threads_name(void);

#endif
