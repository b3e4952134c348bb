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
    bool is_idle;  /* persistent, and not started */
    bool is_blind; /* its status says nothing */
};

/* Number a request; 0 when there is no memory for it. */
uint32_t request_add(MPI_Request handle, struct request like);
/* The number of a request; 0 when it is not known. */
uint32_t request_find(MPI_Request handle);
struct request *request_get(uint32_t number);
/* It is over: the number will be another one's. */
void request_remove(uint32_t number);

#endif
