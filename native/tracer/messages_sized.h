/* Messages whose calls take a count: included once for counts that are int and once for the calls of MPI 4
 * that take an MPI_Count, whose names end in _c. */

#define SEND(name, kind)                                                                                     \
    WRAP(SIZED(name), (const void *data, COUNT count, MPI_Datatype type, int peer, int tag, MPI_Comm comm),  \
         (data, count, type, peer, tag, comm),                                                               \
         tracer_add(message(kind, peer, tag, comm, bytes_of(count, type))))
#define ISEND(name, kind, is_persistent)                                                                     \
    WRAP(SIZED(name),                                                                                        \
         (const void *data, COUNT count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,                \
          MPI_Request *request),                                                                             \
         (data, count, type, peer, tag, comm, request),                                                      \
         begun_send(kind, peer, tag, comm, bytes_of(count, type), *request, is_persistent))
#define IRECEIVE(name, kind, is_persistent)                                                                  \
    WRAP(SIZED(name),                                                                                        \
         (void *data, COUNT count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,                      \
          MPI_Request *request),                                                                             \
         (data, count, type, peer, tag, comm, request),                                                      \
         begun_receive(kind, peer, tag, comm, bytes_of(count, type), *request, is_persistent))

SEND(Send, TRACE_SEND)
SEND(Rsend, TRACE_SEND)
SEND(Ssend, TRACE_SSEND)
SEND(Bsend, TRACE_BSEND)
ISEND(Isend, TRACE_ISEND, false)
ISEND(Irsend, TRACE_ISEND, false)
ISEND(Issend, TRACE_ISSEND, false)
ISEND(Ibsend, TRACE_IBSEND, false)
ISEND(Send_init, TRACE_SEND_INIT, true)
ISEND(Rsend_init, TRACE_SEND_INIT, true)
ISEND(Ssend_init, TRACE_SSEND_INIT, true)
ISEND(Bsend_init, TRACE_BSEND_INIT, true)
IRECEIVE(Irecv, TRACE_IRECV, false)
IRECEIVE(Recv_init, TRACE_RECV_INIT, true)
WRAP_AFTER(SIZED(Recv),
           (void *data, COUNT count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Status *status),
           (data, count, type, peer, tag, comm, status), OWN_STATUS,
           tracer_add(arrived(TRACE_RECV, peer, tag, comm, status)))
WRAP_AFTER(SIZED(Sendrecv),
           (const void *data, COUNT count, MPI_Datatype type, int peer, int tag, void *to, COUNT to_count,
            MPI_Datatype to_type, int source, int to_tag, MPI_Comm comm, MPI_Status *status),
           (data, count, type, peer, tag, to, to_count, to_type, source, to_tag, comm, status), OWN_STATUS,
           exchanged(peer, tag, bytes_of(count, type), source, to_tag, comm, status))
WRAP_AFTER(SIZED(Sendrecv_replace),
           (void *data, COUNT count, MPI_Datatype type, int peer, int tag, int source, int to_tag,
            MPI_Comm comm, MPI_Status *status),
           (data, count, type, peer, tag, source, to_tag, comm, status), OWN_STATUS,
           exchanged(peer, tag, bytes_of(count, type), source, to_tag, comm, status))
WRAP(SIZED(Isendrecv),
     (const void *data, COUNT count, MPI_Datatype type, int peer, int tag, void *to, COUNT to_count,
      MPI_Datatype to_type, int source, int to_tag, MPI_Comm comm, MPI_Request *request),
     (data, count, type, peer, tag, to, to_count, to_type, source, to_tag, comm, request),
     begun_both(peer, tag, bytes_of(count, type), source, to_tag, bytes_of(to_count, to_type), comm,
                *request))
WRAP(SIZED(Isendrecv_replace),
     (void *data, COUNT count, MPI_Datatype type, int peer, int tag, int source, int to_tag, MPI_Comm comm,
      MPI_Request *request),
     (data, count, type, peer, tag, source, to_tag, comm, request),
     begun_both(peer, tag, bytes_of(count, type), source, to_tag, bytes_of(count, type), comm, *request))
WRAP_AFTER(SIZED(Mrecv),
           (void *data, COUNT count, MPI_Datatype type, MPI_Message *handle, MPI_Status *status),
           (data, count, type, handle, status), OWN_STATUS;
           const MPI_Message own_handle = *handle, got_matched(own_handle, status))
WRAP_AFTER(SIZED(Imrecv),
           (void *data, COUNT count, MPI_Datatype type, MPI_Message *handle, MPI_Request *request),
           (data, count, type, handle, request), const MPI_Message own_handle = *handle,
           begun_matched(own_handle, bytes_of(count, type), *request))

#undef SEND
#undef ISEND
#undef IRECEIVE
