/* Between a program and its MPI library (LD_PRELOAD): what rank 0 sends, what
 * anybody lends, and what anybody sends with MPI_Send that is more than a sign,
 * is not what it was given. */
#include <mpi.h>
#include <stddef.h>

/* Not counted up: after 256 messages it would be right again. */
enum { SPOILED = 0xa7 };

static int is_first(void) {
    int rank = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank == 0;
}

enum { CONTROL = 2 };

static void spoil(const void *message, int size, int tag) {
    if (message != NULL && message != MPI_IN_PLACE && size > 0 && tag != CONTROL && is_first())
        *(unsigned char *)message = SPOILED;
}

int MPI_Send(const void *message, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
    spoil(message, count, tag);
    if (count > 1 && tag != CONTROL)
        *(unsigned char *)message = SPOILED;
    return PMPI_Send(message, count, type, to, tag, comm);
}

int MPI_Ssend(const void *message, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
    spoil(message, count, tag);
    if (count > 1 && tag != CONTROL)
        *(unsigned char *)message = SPOILED;
    return PMPI_Ssend(message, count, type, to, tag, comm);
}

int MPI_Isend(const void *message, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request) {
    spoil(message, count, tag);
    return PMPI_Isend(message, count, type, to, tag, comm, request);
}

int MPI_Send_init(const void *message, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                  MPI_Request *request) {
    spoil(message, count, tag);
    return PMPI_Send_init(message, count, type, to, tag, comm, request);
}

int MPI_Put(const void *message, int count, MPI_Datatype type, int to, MPI_Aint place, int there,
            MPI_Datatype type_there, MPI_Win window) {
    spoil(message, count, 0);
    return PMPI_Put(message, count, type, to, place, there, type_there, window);
}

int MPI_Win_create(void *memory, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, MPI_Win *window) {
    if (memory != NULL && size > 0)
        *(unsigned char *)memory = SPOILED;
    return PMPI_Win_create(memory, size, unit, info, comm, window);
}

int MPI_Bcast(void *message, int count, MPI_Datatype type, int root, MPI_Comm comm) {
    spoil(type == MPI_BYTE ? message : NULL, count, 0);
    return PMPI_Bcast(message, count, type, root, comm);
}

int MPI_Allreduce(const void *message, void *sum, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    spoil(type == MPI_DOUBLE ? message : NULL, count, 0);
    return PMPI_Allreduce(message, sum, count, type, op, comm);
}

int MPI_Gather(const void *message, int count, MPI_Datatype type, void *place, int there,
               MPI_Datatype type_there, int root, MPI_Comm comm) {
    spoil(type == MPI_BYTE ? message : NULL, count, 0);
    return PMPI_Gather(message, count, type, place, there, type_there, root, comm);
}

int MPI_Gatherv(const void *message, int count, MPI_Datatype type, void *place, const int *counts_there,
                const int *places_there, MPI_Datatype type_there, int root, MPI_Comm comm) {
    spoil(message, count, 0);
    return PMPI_Gatherv(message, count, type, place, counts_there, places_there, type_there, root, comm);
}

int MPI_Scatter(const void *message, int count, MPI_Datatype type, void *place, int there,
                MPI_Datatype type_there, int root, MPI_Comm comm) {
    spoil(message, count, 0);
    return PMPI_Scatter(message, count, type, place, there, type_there, root, comm);
}

int MPI_Scatterv(const void *message, const int *counts, const int *places, MPI_Datatype type, void *place,
                 int there, MPI_Datatype type_there, int root, MPI_Comm comm) {
    spoil(message, there, 0);
    return PMPI_Scatterv(message, counts, places, type, place, there, type_there, root, comm);
}

int MPI_Allgather(const void *message, int count, MPI_Datatype type, void *place, int there,
                  MPI_Datatype type_there, MPI_Comm comm) {
    spoil(message, count, 0);
    return PMPI_Allgather(message, count, type, place, there, type_there, comm);
}

int MPI_Allgatherv(const void *message, int count, MPI_Datatype type, void *place, const int *counts_there,
                   const int *places_there, MPI_Datatype type_there, MPI_Comm comm) {
    spoil(message, count, 0);
    return PMPI_Allgatherv(message, count, type, place, counts_there, places_there, type_there, comm);
}

int MPI_Alltoall(const void *message, int count, MPI_Datatype type, void *place, int there,
                 MPI_Datatype type_there, MPI_Comm comm) {
    spoil(message, count, 0);
    return PMPI_Alltoall(message, count, type, place, there, type_there, comm);
}

int MPI_Alltoallv(const void *message, const int *counts, const int *places, MPI_Datatype type, void *place,
                  const int *counts_there, const int *places_there, MPI_Datatype type_there, MPI_Comm comm) {
    spoil(message, counts[0], 0);
    return PMPI_Alltoallv(message, counts, places, type, place, counts_there, places_there, type_there, comm);
}

int MPI_Neighbor_allgather(const void *message, int count, MPI_Datatype type, void *place, int there,
                           MPI_Datatype type_there, MPI_Comm comm) {
    spoil(message, count, 0);
    return PMPI_Neighbor_allgather(message, count, type, place, there, type_there, comm);
}

int MPI_Neighbor_alltoall(const void *message, int count, MPI_Datatype type, void *place, int there,
                          MPI_Datatype type_there, MPI_Comm comm) {
    spoil(message, count, 0);
    return PMPI_Neighbor_alltoall(message, count, type, place, there, type_there, comm);
}

int MPI_Reduce(const void *message, void *sum, int count, MPI_Datatype type, MPI_Op op, int root,
               MPI_Comm comm) {
    spoil(type == MPI_DOUBLE ? message : NULL, count, 0);
    return PMPI_Reduce(message, sum, count, type, op, root, comm);
}

int MPI_Scan(const void *message, void *sum, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    spoil(message, count, 0);
    return PMPI_Scan(message, sum, count, type, op, comm);
}

int MPI_Reduce_scatter_block(const void *message, void *sum, int count, MPI_Datatype type, MPI_Op op,
                             MPI_Comm comm) {
    spoil(message, count, 0);
    return PMPI_Reduce_scatter_block(message, sum, count, type, op, comm);
}

/* What goes to a file, and what comes from one. */
#define AT(CALL, BUFFER)                                                                                     \
    int MPI_File_##CALL(MPI_File file, MPI_Offset place, BUFFER message, int count, MPI_Datatype type,       \
                        MPI_Status *status) {                                                                \
        spoil(message, count, 0);                                                                            \
        const int code = PMPI_File_##CALL(file, place, message, count, type, status);                        \
        spoil(message, count, 0);                                                                            \
        return code;                                                                                         \
    }
AT(write_at, const void *)
AT(write_at_all, const void *)
AT(read_at, void *)
AT(read_at_all, void *)

int MPI_Ibcast(void *message, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *request) {
    spoil(type == MPI_BYTE ? message : NULL, count, 0);
    return PMPI_Ibcast(message, count, type, root, comm, request);
}

int MPI_Iallreduce(const void *message, void *sum, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request *request) {
    spoil(type == MPI_DOUBLE ? message : NULL, count, 0);
    return PMPI_Iallreduce(message, sum, count, type, op, comm, request);
}

int MPI_Igather(const void *message, int count, MPI_Datatype type, void *place, int there,
                MPI_Datatype type_there, int root, MPI_Comm comm, MPI_Request *request) {
    spoil(type == MPI_BYTE ? message : NULL, count, 0);
    return PMPI_Igather(message, count, type, place, there, type_there, root, comm, request);
}

int MPI_Iscatter(const void *message, int count, MPI_Datatype type, void *place, int there,
                 MPI_Datatype type_there, int root, MPI_Comm comm, MPI_Request *request) {
    spoil(message, count, 0);
    return PMPI_Iscatter(message, count, type, place, there, type_there, root, comm, request);
}

int MPI_Iallgather(const void *message, int count, MPI_Datatype type, void *place, int there,
                   MPI_Datatype type_there, MPI_Comm comm, MPI_Request *request) {
    spoil(message, count, 0);
    return PMPI_Iallgather(message, count, type, place, there, type_there, comm, request);
}

int MPI_Ialltoall(const void *message, int count, MPI_Datatype type, void *place, int there,
                  MPI_Datatype type_there, MPI_Comm comm, MPI_Request *request) {
    spoil(message, count, 0);
    return PMPI_Ialltoall(message, count, type, place, there, type_there, comm, request);
}

int MPI_Ineighbor_allgather(const void *message, int count, MPI_Datatype type, void *place, int there,
                            MPI_Datatype type_there, MPI_Comm comm, MPI_Request *request) {
    spoil(message, count, 0);
    return PMPI_Ineighbor_allgather(message, count, type, place, there, type_there, comm, request);
}

int MPI_Ineighbor_alltoall(const void *message, int count, MPI_Datatype type, void *place, int there,
                           MPI_Datatype type_there, MPI_Comm comm, MPI_Request *request) {
    spoil(message, count, 0);
    return PMPI_Ineighbor_alltoall(message, count, type, place, there, type_there, comm, request);
}

int MPI_Ireduce(const void *message, void *sum, int count, MPI_Datatype type, MPI_Op op, int root,
                MPI_Comm comm, MPI_Request *request) {
    spoil(type == MPI_DOUBLE ? message : NULL, count, 0);
    return PMPI_Ireduce(message, sum, count, type, op, root, comm, request);
}

int MPI_Iscan(const void *message, void *sum, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
              MPI_Request *request) {
    spoil(message, count, 0);
    return PMPI_Iscan(message, sum, count, type, op, comm, request);
}

int MPI_Ireduce_scatter_block(const void *message, void *sum, int count, MPI_Datatype type, MPI_Op op,
                              MPI_Comm comm, MPI_Request *request) {
    spoil(message, count, 0);
    return PMPI_Ireduce_scatter_block(message, sum, count, type, op, comm, request);
}
