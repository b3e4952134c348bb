/* What a rank did with MPI: counted by the wrappers, gathered and written when the program ends. */
#ifndef WULF_PROFILE_H
#define WULF_PROFILE_H

#include <mpi.h>
#include <stdint.h>

/* What a call is for: to move a message between two, to wait for such, all ranks together, or memory of
 * others. */
enum kind { KIND_POINT, KIND_WAIT, KIND_COLLECTIVE, KIND_ONE_SIDED, KINDS };

/* Time in calls is that of the outermost one. */
uint64_t profile_enter(void);
void profile_leave(uint64_t entered_ns, enum kind kind);
/* A message to another rank, or this rank's part in a collective. */
void profile_moved(enum kind kind, int count, MPI_Datatype type);
/* As many of one size as there are ranks but this one; `type` is that of each. */
void profile_to_all(int count, MPI_Datatype type, MPI_Comm comm);
/* One for each rank but this one. */
void profile_to_each(const int counts[], MPI_Datatype type, MPI_Comm comm);
void profile_partner(int rank, MPI_Comm comm);
/* A persistent request was started: what it sends was said long before, and is not counted. */
void profile_started(int count);

#endif
