/* What all ranks of a communicator do together. */
#include <mpi.h>
#include <stdlib.h>

#include "tracer/communicators.h"
#include "tracer/requests.h"
#include "tracer/types.h"
#include "tracer/wrap.h"

/* Counts of each rank or neighbour, of the program's own kind; NULL: none. */
struct counts {
    const int *small;
    const MPI_Count *large;
};

/* A rank's part in a collective. */
struct part {
    enum trace_kind kind;
    MPI_Comm comm;
    int root;
    uint64_t bytes;
    bool in_place;
    /* Bytes of each rank or neighbour: with one type, or with a type each. */
    struct counts counts;
    const MPI_Datatype *types;
    MPI_Datatype type;
    MPI_Request *request; /* of one that is only begun */
};

static int count_of(const struct part *part) {
    int count = 0;
    if (part->counts.small == NULL && part->counts.large == NULL)
        return 0;
    if (part->kind >= TRACE_NEIGHBOR_ALLGATHER && part->kind <= TRACE_NEIGHBOR_ALLTOALLW)
        return communicator_targets(part->comm);
    PMPI_Comm_size(part->comm, &count);
    return count;
}

/* With the sizes that it has for each rank or neighbour. */
static void add_with_sizes(struct trace_record record, const struct part *part, int count) {
    uint64_t *sizes = malloc((size_t)count * sizeof *sizes);
    if (sizes == NULL) {
        tracer_mark(TRACE_PASSED);
        tracer_add(record);
        return;
    }
    for (int one = 0; one < count; one++)
        sizes[one] = bytes_of(part->counts.small != NULL ? part->counts.small[one] : part->counts.large[one],
                              part->types != NULL ? part->types[one] : part->type);
    tracer_add_with(record, sizes, (uint64_t)count * sizeof *sizes);
    free(sizes);
}

static void all_together(struct part part) {
    struct trace_record record = {.kind = (uint8_t)part.kind,
                                  .flags = part.in_place ? TRACE_IN_PLACE : 0,
                                  .comm = communicator_number(part.comm),
                                  .peer = part.root < 0 ? TRACE_NOBODY : part.root,
                                  .bytes = part.bytes};
    if (part.request != NULL) {
        record.flags |= TRACE_NONBLOCKING;
        record.request = request_add(*part.request, (struct request){.comm = record.comm});
        if (record.request == 0)
            tracer_mark(TRACE_PASSED);
    }
    const int count = count_of(&part);
    if (count > 0)
        add_with_sizes(record, &part, count);
    else
        tracer_add(record);
}

static int own_rank(MPI_Comm comm) {
    int rank = 0;
    PMPI_Comm_rank(comm, &rank);
    return rank;
}

static bool is_root(int root, MPI_Comm comm) { return root == own_rank(comm); }

/* --- the calls, and each as one that is only begun ------------------------------------------------------ */

#define COLLECTIVE(name, begun_name, declared, given, ...)                                                   \
    WRAP(name, declared, given, MPI_Request *const request = NULL; all_together((struct part){__VA_ARGS__})) \
    WRAP(begun_name, (STRIP declared, MPI_Request * request), (STRIP given, request),                        \
         all_together((struct part){__VA_ARGS__}))
#define OF(which, of_root, of_bytes)                                                                         \
    .kind = which, .comm = comm, .request = request, .root = of_root, .bytes = of_bytes
#define NO_ROOT (-1)
#define IN_PLACE .in_place = data == MPI_IN_PLACE

COLLECTIVE(Barrier, Ibarrier, (MPI_Comm comm), (comm), OF(TRACE_BARRIER, NO_ROOT, 0))

#define COUNT int
#define PLACE int
#define SIZED(name) name
#define EACH(of) .counts = {.small = of}
#include "tracer/collectives_sized.h"
#undef COUNT
#undef PLACE
#undef SIZED
#undef EACH
#define COUNT MPI_Count
#define PLACE MPI_Aint
#define SIZED(name) name##_c
#define EACH(of) .counts = {.large = of}
#include "tracer/collectives_sized.h"
