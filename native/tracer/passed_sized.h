/* Of what a replay cannot follow the calls that take a count: included once for counts that are int and once
 * for the calls of MPI 4 that take an MPI_Count, whose names end in _c. */

#define WINDOW(name, declared, given) UNSOUND(SIZED(name), declared, given, TRACE_ONE_SIDED)
WINDOW(Win_create, (void *base, MPI_Aint size, PLACE unit, MPI_Info info, MPI_Comm comm, MPI_Win *win),
       (base, size, unit, info, comm, win))
WINDOW(Win_allocate, (MPI_Aint size, PLACE unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win),
       (size, unit, info, comm, base, win))
WINDOW(Win_allocate_shared,
       (MPI_Aint size, PLACE unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win),
       (size, unit, info, comm, base, win))

#define AREA int peer, MPI_Aint place, COUNT to_count, MPI_Datatype to_type
NAMED(SIZED(Put), (const void *data, COUNT count, MPI_Datatype type, AREA, MPI_Win win),
      (data, count, type, peer, place, to_count, to_type, win))
NAMED(SIZED(Get), (void *data, COUNT count, MPI_Datatype type, AREA, MPI_Win win),
      (data, count, type, peer, place, to_count, to_type, win))
NAMED(SIZED(Accumulate), (const void *data, COUNT count, MPI_Datatype type, AREA, MPI_Op op, MPI_Win win),
      (data, count, type, peer, place, to_count, to_type, op, win))
NAMED(SIZED(Get_accumulate),
      (const void *data, COUNT count, MPI_Datatype type, void *old, COUNT old_count, MPI_Datatype old_type,
       AREA, MPI_Op op, MPI_Win win),
      (data, count, type, old, old_count, old_type, peer, place, to_count, to_type, op, win))
NAMED(SIZED(Rput),
      (const void *data, COUNT count, MPI_Datatype type, AREA, MPI_Win win, MPI_Request *request),
      (data, count, type, peer, place, to_count, to_type, win, request))
NAMED(SIZED(Rget), (void *data, COUNT count, MPI_Datatype type, AREA, MPI_Win win, MPI_Request *request),
      (data, count, type, peer, place, to_count, to_type, win, request))
NAMED(SIZED(Raccumulate),
      (const void *data, COUNT count, MPI_Datatype type, AREA, MPI_Op op, MPI_Win win, MPI_Request *request),
      (data, count, type, peer, place, to_count, to_type, op, win, request))
NAMED(SIZED(Rget_accumulate),
      (const void *data, COUNT count, MPI_Datatype type, void *old, COUNT old_count, MPI_Datatype old_type,
       AREA, MPI_Op op, MPI_Win win, MPI_Request *request),
      (data, count, type, old, old_count, old_type, peer, place, to_count, to_type, op, win, request))

/* Files: `what` is begun, or done; `mine` names its last argument. */
#define HERE(name, data_type, last, mine)                                                                    \
    MOVED(SIZED(File_##name), (MPI_File file, data_type data, COUNT count, MPI_Datatype type, last),         \
          (file, data, count, type, mine))
#define THERE(name, data_type, last, mine)                                                                   \
    MOVED(SIZED(File_##name),                                                                                \
          (MPI_File file, MPI_Offset place, data_type data, COUNT count, MPI_Datatype type, last),           \
          (file, place, data, count, type, mine))
#define DONE MPI_Status *status, status
#define BEGUN MPI_Request *request, request
#define FILES(make, name, data_type, ...) make(name, data_type, __VA_ARGS__)
FILES(HERE, read, void *, DONE)
FILES(HERE, read_all, void *, DONE)
FILES(HERE, read_shared, void *, DONE)
FILES(HERE, read_ordered, void *, DONE)
FILES(HERE, iread, void *, BEGUN)
FILES(HERE, iread_all, void *, BEGUN)
FILES(HERE, iread_shared, void *, BEGUN)
FILES(HERE, write, const void *, DONE)
FILES(HERE, write_all, const void *, DONE)
FILES(HERE, write_shared, const void *, DONE)
FILES(HERE, write_ordered, const void *, DONE)
FILES(HERE, iwrite, const void *, BEGUN)
FILES(HERE, iwrite_all, const void *, BEGUN)
FILES(HERE, iwrite_shared, const void *, BEGUN)
FILES(THERE, read_at, void *, DONE)
FILES(THERE, read_at_all, void *, DONE)
FILES(THERE, iread_at, void *, BEGUN)
FILES(THERE, iread_at_all, void *, BEGUN)
FILES(THERE, write_at, const void *, DONE)
FILES(THERE, write_at_all, const void *, DONE)
FILES(THERE, iwrite_at, const void *, BEGUN)
FILES(THERE, iwrite_at_all, const void *, BEGUN)

#define SPLIT(name, data_type)                                                                               \
    MOVED(SIZED(File_##name##_begin), (MPI_File file, data_type data, COUNT count, MPI_Datatype type),       \
          (file, data, count, type))
SPLIT(read_all, void *)
SPLIT(read_ordered, void *)
SPLIT(write_all, const void *)
SPLIT(write_ordered, const void *)
#define SPLIT_AT(name, data_type)                                                                            \
    MOVED(SIZED(File_##name##_begin),                                                                        \
          (MPI_File file, MPI_Offset place, data_type data, COUNT count, MPI_Datatype type),                 \
          (file, place, data, count, type))
SPLIT_AT(read_at_all, void *)
SPLIT_AT(write_at_all, const void *)

/* Collectives that are begun again and again. */
#define PERSISTENT(name, declared, given)                                                                    \
    UNSOUND(SIZED(name), (STRIP declared, MPI_Comm comm, MPI_Info info, MPI_Request * request),              \
            (STRIP given, comm, info, request), TRACE_PASSED)
#define TO void *to, COUNT to_count, MPI_Datatype to_type
#define FROM const void *data, COUNT count, MPI_Datatype type
#define EACH_TO void *to, const COUNT *to_counts, const PLACE *to_places, MPI_Datatype to_type
#define EACH_FROM const void *data, const COUNT *counts, const PLACE *places, MPI_Datatype type
#define REDUCED const void *data, void *to, COUNT count, MPI_Datatype type, MPI_Op op
PERSISTENT(Bcast_init, (void *data, COUNT count, MPI_Datatype type, int root), (data, count, type, root))
PERSISTENT(Gather_init, (FROM, TO, int root), (data, count, type, to, to_count, to_type, root))
PERSISTENT(Gatherv_init, (FROM, EACH_TO, int root),
           (data, count, type, to, to_counts, to_places, to_type, root))
PERSISTENT(Scatter_init, (FROM, TO, int root), (data, count, type, to, to_count, to_type, root))
PERSISTENT(Scatterv_init, (EACH_FROM, TO, int root),
           (data, counts, places, type, to, to_count, to_type, root))
PERSISTENT(Allgather_init, (FROM, TO), (data, count, type, to, to_count, to_type))
PERSISTENT(Allgatherv_init, (FROM, EACH_TO), (data, count, type, to, to_counts, to_places, to_type))
PERSISTENT(Alltoall_init, (FROM, TO), (data, count, type, to, to_count, to_type))
PERSISTENT(Alltoallv_init, (EACH_FROM, EACH_TO),
           (data, counts, places, type, to, to_counts, to_places, to_type))
PERSISTENT(Reduce_init, (REDUCED, int root), (data, to, count, type, op, root))
PERSISTENT(Allreduce_init, (REDUCED), (data, to, count, type, op))
PERSISTENT(Scan_init, (REDUCED), (data, to, count, type, op))
PERSISTENT(Exscan_init, (REDUCED), (data, to, count, type, op))
PERSISTENT(Reduce_scatter_block_init, (REDUCED), (data, to, count, type, op))
PERSISTENT(Reduce_scatter_init,
           (const void *data, void *to, const COUNT *counts, MPI_Datatype type, MPI_Op op),
           (data, to, counts, type, op))
PERSISTENT(Neighbor_allgather_init, (FROM, TO), (data, count, type, to, to_count, to_type))
PERSISTENT(Neighbor_allgatherv_init, (FROM, EACH_TO), (data, count, type, to, to_counts, to_places, to_type))
PERSISTENT(Neighbor_alltoall_init, (FROM, TO), (data, count, type, to, to_count, to_type))
PERSISTENT(Neighbor_alltoallv_init, (EACH_FROM, EACH_TO),
           (data, counts, places, type, to, to_counts, to_places, to_type))
#define TYPES(place)                                                                                         \
    const void *data, const COUNT *counts, const place *places, const MPI_Datatype *types, void *to,         \
        const COUNT *to_counts, const place *to_places, const MPI_Datatype *to_types
PERSISTENT(Alltoallw_init, (TYPES(PLACE)), (data, counts, places, types, to, to_counts, to_places, to_types))
PERSISTENT(Neighbor_alltoallw_init, (TYPES(MPI_Aint)),
           (data, counts, places, types, to, to_counts, to_places, to_types))

#undef WINDOW
#undef AREA
#undef HERE
#undef THERE
#undef DONE
#undef BEGUN
#undef FILES
#undef SPLIT
#undef SPLIT_AT
#undef PERSISTENT
#undef TO
#undef FROM
#undef EACH_TO
#undef EACH_FROM
#undef REDUCED
#undef TYPES
