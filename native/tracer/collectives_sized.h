/* Collectives whose calls take a count: included once for counts that are int and once for the calls of MPI 4
 * that take an MPI_Count, whose names end in _c. */

/* IN_PLACE gives no count of what is sent: that of what is received stands for it. */
#define OWN_PART (data == MPI_IN_PLACE ? bytes_of(to_count, to_type) : bytes_of(count, type))
#define DATA_TO                                                                                              \
    const void *data, COUNT count, MPI_Datatype type, void *to, COUNT to_count, MPI_Datatype to_type
#define GIVEN_TO data, count, type, to, to_count, to_type

COLLECTIVE(SIZED(Bcast), SIZED(Ibcast), (void *data, COUNT count, MPI_Datatype type, int root, MPI_Comm comm),
           (data, count, type, root, comm), OF(TRACE_BCAST, root, bytes_of(count, type)))
COLLECTIVE(SIZED(Gather), SIZED(Igather), (DATA_TO, int root, MPI_Comm comm), (GIVEN_TO, root, comm),
           OF(TRACE_GATHER, root, OWN_PART), IN_PLACE)
COLLECTIVE(SIZED(Gatherv), SIZED(Igatherv),
           (const void *data, COUNT count, MPI_Datatype type, void *to, const COUNT *to_counts,
            const PLACE *places, MPI_Datatype to_type, int root, MPI_Comm comm),
           (data, count, type, to, to_counts, places, to_type, root, comm),
           OF(TRACE_GATHERV, root,
              data == MPI_IN_PLACE ? bytes_of(to_counts[own_rank(comm)], to_type) : bytes_of(count, type)),
           IN_PLACE)
COLLECTIVE(SIZED(Scatter), SIZED(Iscatter), (DATA_TO, int root, MPI_Comm comm), (GIVEN_TO, root, comm),
           OF(TRACE_SCATTER, root, is_root(root, comm) ? bytes_of(count, type) : bytes_of(to_count, to_type)),
           .in_place = to == MPI_IN_PLACE)
COLLECTIVE(SIZED(Scatterv), SIZED(Iscatterv),
           (const void *data, const COUNT *counts, const PLACE *places, MPI_Datatype type, void *to,
            COUNT to_count, MPI_Datatype to_type, int root, MPI_Comm comm),
           (data, counts, places, type, to, to_count, to_type, root, comm),
           OF(TRACE_SCATTERV, root,
              is_root(root, comm) ? bytes_of(counts[root], type) : bytes_of(to_count, to_type)),
           EACH(is_root(root, comm) ? counts : NULL), .type = type, .in_place = to == MPI_IN_PLACE)
COLLECTIVE(SIZED(Allgather), SIZED(Iallgather), (DATA_TO, MPI_Comm comm), (GIVEN_TO, comm),
           OF(TRACE_ALLGATHER, NO_ROOT, OWN_PART), IN_PLACE)
COLLECTIVE(SIZED(Allgatherv), SIZED(Iallgatherv),
           (const void *data, COUNT count, MPI_Datatype type, void *to, const COUNT *to_counts,
            const PLACE *places, MPI_Datatype to_type, MPI_Comm comm),
           (data, count, type, to, to_counts, places, to_type, comm),
           OF(TRACE_ALLGATHERV, NO_ROOT, bytes_of(to_counts[own_rank(comm)], to_type)), IN_PLACE,
           EACH(to_counts), .type = to_type)
COLLECTIVE(SIZED(Alltoall), SIZED(Ialltoall), (DATA_TO, MPI_Comm comm), (GIVEN_TO, comm),
           OF(TRACE_ALLTOALL, NO_ROOT, OWN_PART), IN_PLACE)
COLLECTIVE(SIZED(Alltoallv), SIZED(Ialltoallv),
           (const void *data, const COUNT *counts, const PLACE *places, MPI_Datatype type, void *to,
            const COUNT *to_counts, const PLACE *to_places, MPI_Datatype to_type, MPI_Comm comm),
           (data, counts, places, type, to, to_counts, to_places, to_type, comm),
           OF(TRACE_ALLTOALLV, NO_ROOT, 0), IN_PLACE, EACH(data == MPI_IN_PLACE ? to_counts : counts),
           .type = data == MPI_IN_PLACE ? to_type : type)
COLLECTIVE(SIZED(Alltoallw), SIZED(Ialltoallw),
           (const void *data, const COUNT *counts, const PLACE *places, const MPI_Datatype *types, void *to,
            const COUNT *to_counts, const PLACE *to_places, const MPI_Datatype *to_types, MPI_Comm comm),
           (data, counts, places, types, to, to_counts, to_places, to_types, comm),
           OF(TRACE_ALLTOALLW, NO_ROOT, 0), IN_PLACE, EACH(data == MPI_IN_PLACE ? to_counts : counts),
           .types = data == MPI_IN_PLACE ? to_types : types)

#define REDUCTION const void *data, void *to, COUNT count, MPI_Datatype type, MPI_Op op
COLLECTIVE(SIZED(Reduce), SIZED(Ireduce), (REDUCTION, int root, MPI_Comm comm),
           (data, to, count, type, op, root, comm), OF(TRACE_REDUCE, root, bytes_of(count, type)), IN_PLACE)
COLLECTIVE(SIZED(Allreduce), SIZED(Iallreduce), (REDUCTION, MPI_Comm comm), (data, to, count, type, op, comm),
           OF(TRACE_ALLREDUCE, NO_ROOT, bytes_of(count, type)), IN_PLACE)
COLLECTIVE(SIZED(Scan), SIZED(Iscan), (REDUCTION, MPI_Comm comm), (data, to, count, type, op, comm),
           OF(TRACE_SCAN, NO_ROOT, bytes_of(count, type)), IN_PLACE)
COLLECTIVE(SIZED(Exscan), SIZED(Iexscan), (REDUCTION, MPI_Comm comm), (data, to, count, type, op, comm),
           OF(TRACE_EXSCAN, NO_ROOT, bytes_of(count, type)), IN_PLACE)
COLLECTIVE(SIZED(Reduce_scatter_block), SIZED(Ireduce_scatter_block), (REDUCTION, MPI_Comm comm),
           (data, to, count, type, op, comm), OF(TRACE_REDUCE_SCATTER_BLOCK, NO_ROOT, bytes_of(count, type)),
           IN_PLACE)
COLLECTIVE(SIZED(Reduce_scatter), SIZED(Ireduce_scatter),
           (const void *data, void *to, const COUNT *counts, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
           (data, to, counts, type, op, comm),
           OF(TRACE_REDUCE_SCATTER, NO_ROOT, bytes_of(counts[own_rank(comm)], type)), IN_PLACE, EACH(counts),
           .type = type)

COLLECTIVE(SIZED(Neighbor_allgather), SIZED(Ineighbor_allgather), (DATA_TO, MPI_Comm comm), (GIVEN_TO, comm),
           OF(TRACE_NEIGHBOR_ALLGATHER, NO_ROOT, bytes_of(count, type)))
COLLECTIVE(SIZED(Neighbor_allgatherv), SIZED(Ineighbor_allgatherv),
           (const void *data, COUNT count, MPI_Datatype type, void *to, const COUNT *to_counts,
            const PLACE *places, MPI_Datatype to_type, MPI_Comm comm),
           (data, count, type, to, to_counts, places, to_type, comm),
           OF(TRACE_NEIGHBOR_ALLGATHERV, NO_ROOT, bytes_of(count, type)))
COLLECTIVE(SIZED(Neighbor_alltoall), SIZED(Ineighbor_alltoall), (DATA_TO, MPI_Comm comm), (GIVEN_TO, comm),
           OF(TRACE_NEIGHBOR_ALLTOALL, NO_ROOT, bytes_of(count, type)))
COLLECTIVE(SIZED(Neighbor_alltoallv), SIZED(Ineighbor_alltoallv),
           (const void *data, const COUNT *counts, const PLACE *places, MPI_Datatype type, void *to,
            const COUNT *to_counts, const PLACE *to_places, MPI_Datatype to_type, MPI_Comm comm),
           (data, counts, places, type, to, to_counts, to_places, to_type, comm),
           OF(TRACE_NEIGHBOR_ALLTOALLV, NO_ROOT, 0), EACH(counts), .type = type)
COLLECTIVE(SIZED(Neighbor_alltoallw), SIZED(Ineighbor_alltoallw),
           (const void *data, const COUNT *counts, const MPI_Aint *places, const MPI_Datatype *types,
            void *to, const COUNT *to_counts, const MPI_Aint *to_places, const MPI_Datatype *to_types,
            MPI_Comm comm),
           (data, counts, places, types, to, to_counts, to_places, to_types, comm),
           OF(TRACE_NEIGHBOR_ALLTOALLW, NO_ROOT, 0), EACH(counts), .types = types)

#undef OWN_PART
#undef DATA_TO
#undef GIVEN_TO
#undef REDUCTION
