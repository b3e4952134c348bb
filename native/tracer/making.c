/* Communicators that are made and freed, a line a call. */
#include <mpi.h>

#include "tracer/communicators.h"
#include "tracer/requests.h"
#include "tracer/wrap.h"

/* All ranks of `comm` made communicators: they agree on a number of 8 B. */
static struct trace_record making(MPI_Comm comm) {
    return (struct trace_record){.kind = TRACE_MAKE_COMMUNICATOR,
                                 .comm = communicator_number(comm),
                                 .peer = TRACE_NOBODY,
                                 .bytes = sizeof(uint64_t)};
}

static bool is_of_two_groups(MPI_Comm comm) {
    int is_inter = 0;
    PMPI_Comm_test_inter(comm, &is_inter);
    return is_inter != 0;
}

static void made(MPI_Comm from, const MPI_Comm *to) {
    if (is_of_two_groups(from))
        tracer_other("communicator of two groups");
    else
        tracer_add(making(from));
    if (*to != MPI_COMM_NULL)
        (void)communicator_number(*to);
}

/* … by its members only. */
static void made_by_members(const MPI_Comm *to, const char *name) {
    if (*to == MPI_COMM_NULL)
        tracer_other(name);
    else
        tracer_add(making(*to));
}

/* … which is there when the request is complete. */
static void begun_making(MPI_Comm from, const MPI_Comm *to, MPI_Request handle, const char *name) {
    if (is_of_two_groups(from)) {
        tracer_other(name);
        return;
    }
    struct trace_record record = making(from);
    record.flags = TRACE_NONBLOCKING;
    record.request = request_add(handle, (struct request){.comm = record.comm});
    if (record.request == 0)
        tracer_mark(TRACE_PASSED);
    tracer_add(record);
    communicator_will_be(*to, from);
}

static void gone(MPI_Comm comm, const char *name) {
    communicator_forget(comm);
    tracer_other(name);
}

#define MAKE(name, declared, given) WRAP(name, declared, given, made(comm, to))
MAKE(Comm_dup, (MPI_Comm comm, MPI_Comm *to), (comm, to))
MAKE(Comm_dup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *to), (comm, info, to))
MAKE(Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm *to), (comm, group, to))
MAKE(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm *to), (comm, color, key, to))
MAKE(Comm_split_type, (MPI_Comm comm, int kind, int key, MPI_Info info, MPI_Comm *to),
     (comm, kind, key, info, to))
MAKE(Cart_create,
     (MPI_Comm comm, int dimensions, const int *sizes, const int *periods, int reorder, MPI_Comm *to),
     (comm, dimensions, sizes, periods, reorder, to))
MAKE(Cart_sub, (MPI_Comm comm, const int *kept, MPI_Comm *to), (comm, kept, to))
MAKE(Graph_create, (MPI_Comm comm, int nodes, const int *index, const int *edges, int reorder, MPI_Comm *to),
     (comm, nodes, index, edges, reorder, to))
MAKE(Dist_graph_create,
     (MPI_Comm comm, int count, const int *sources, const int *degrees, const int *targets,
      const int *weights, MPI_Info info, int reorder, MPI_Comm *to),
     (comm, count, sources, degrees, targets, weights, info, reorder, to))
MAKE(Dist_graph_create_adjacent,
     (MPI_Comm comm, int in, const int *sources, const int *in_weights, int out, const int *targets,
      const int *out_weights, MPI_Info info, int reorder, MPI_Comm *to),
     (comm, in, sources, in_weights, out, targets, out_weights, info, reorder, to))
WRAP(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *to), (comm, group, tag, to),
     made_by_members(to, "MPI_Comm_create_group"))
WRAP(Intercomm_merge, (MPI_Comm comm, int high, MPI_Comm *to), (comm, high, to),
     made_by_members(to, "MPI_Intercomm_merge"))
WRAP(Comm_idup, (MPI_Comm comm, MPI_Comm *to, MPI_Request *request), (comm, to, request),
     begun_making(comm, to, *request, "MPI_Comm_idup"))
WRAP(Comm_idup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *to, MPI_Request *request),
     (comm, info, to, request), begun_making(comm, to, *request, "MPI_Comm_idup_with_info"))
WRAP_AFTER(Comm_free, (MPI_Comm * comm), (comm), const MPI_Comm handle = *comm, gone(handle, "MPI_Comm_free"))
WRAP_AFTER(Comm_disconnect, (MPI_Comm * comm), (comm), const MPI_Comm handle = *comm,
           gone(handle, "MPI_Comm_disconnect"))
UNSOUND(Intercomm_create, (MPI_Comm comm, int leader, MPI_Comm peers, int remote, int tag, MPI_Comm *to),
        (comm, leader, peers, remote, tag, to), TRACE_INTER)
