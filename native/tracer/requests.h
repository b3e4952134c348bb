/* Requests that run, and the small number that each has in the trace. */
#ifndef WULF_TRACER_REQUESTS_H
#define WULF_TRACER_REQUESTS_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

struct request {
    MPI_Request handle;
    uint32_t next;   /* of the same handle: libraries have one for all that is complete at once */
    uint32_t beside; /* the number of another that is complete with this one; 0: none */
    uint16_t comm;
    bool is_receive, is_persistent;
    bool is_idle;      /* persistent, and not started */
    bool is_blind;     /* its status says nothing */
    bool is_cancelled; /* MPI_Cancel was called: its end says whether it was taken back */
    bool is_taken;     /* a thread is in a call that may complete it */
};

/* Number a request; 0 when there is no memory for it. */
uint32_t request_add(MPI_Request handle, struct request like);
/* The number of a request; 0 when it is not known. */
uint32_t request_find(MPI_Request handle);
/* Where several threads call: the number of one that no other thread has taken, for the call that begins now.
 * The library may give the handle to a new request before that call is recorded. 0 when there is none. */
uint32_t request_take(MPI_Request handle);
struct request *request_get(uint32_t number);
/* It is over: the number will be another one's. */
void request_remove(uint32_t number);
/* Whether one was cancelled whose end has not been seen. */
bool request_some_cancelled(void);

#endif
