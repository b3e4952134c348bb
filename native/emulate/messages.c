/* Messages of two ranks: blocking, non-blocking, persistent. */
#include "emulate/emulation.h"
#include "emulate/mail.h"

static const struct team *team_of(const struct emulation *emulation, const struct entry *entry) {
    return team_at(&emulation->teams, entry->record.comm);
}

int perform_send(struct emulation *emulation, const struct entry *entry) {
    const struct trace_record *record = &entry->record;
    if (mail_carries(emulation, team_of(emulation, entry), record->peer))
        return mail_send(emulation, record);
    return MPI_Send(emulation->out, (int)record->bytes, MPI_BYTE, record->peer, record->tag,
                    team_of(emulation, entry)->comm);
}

/* Receive by mail, and look at it. */
static int take(struct emulation *emulation, const struct request *request) {
    uint64_t got = 0;
    const int code = mail_receive(emulation, request->team, request->source, request->tag, request->in,
                                  request->bytes, &got);
    if (code == MPI_SUCCESS)
        check_bytes(emulation, request->in, request->bytes, request->team, request->source, got);
    return code;
}

/* A receive as a request, which is not begun. */
static struct request request_of(const struct trace_record *record, const struct team *team,
                                 unsigned char *in) {
    return (struct request){.handle = MPI_REQUEST_NULL,
                            .is_receive = true,
                            .in = in,
                            .team = team,
                            .source = record->peer,
                            .tag = record->tag,
                            .bytes = record->bytes};
}

/* Both go by mail, or one of them and the other by a message: what is sent has room, and waits for nobody. */
static int exchange_by_mail(struct emulation *emulation, const struct trace_record *out,
                            const struct trace_record *in_record, const struct team *team,
                            unsigned char *in) {
    MPI_Request sent = MPI_REQUEST_NULL;
    MPI_Status status;
    int code = MPI_SUCCESS;
    if (mail_carries(emulation, team, out->peer))
        code = mail_send(emulation, out);
    else
        code = MPI_Isend(emulation->out, (int)out->bytes, MPI_BYTE, out->peer, out->tag, team->comm, &sent);
    if (code != MPI_SUCCESS)
        return code;
    if (mail_carries(emulation, team, in_record->peer)) {
        const struct request request = request_of(in_record, team, in);
        code = take(emulation, &request);
    } else {
        code = MPI_Recv(in, (int)in_record->bytes, MPI_BYTE, in_record->peer, in_record->tag, team->comm,
                        &status);
        if (code == MPI_SUCCESS)
            check_message(emulation, in, in_record->bytes, team, in_record->peer, &status);
    }
    return code == MPI_SUCCESS ? MPI_Wait(&sent, MPI_STATUS_IGNORE) : code;
}

int perform_receive(struct emulation *emulation, const struct entry *entry) {
    const struct trace_record *record = &entry->record;
    const struct team *team = team_of(emulation, entry);
    unsigned char *in = emulation->in + shelf_take(&emulation->passing, record->bytes);
    MPI_Status status;
    spoil(emulation, in, record->bytes);
    if (mail_carries(emulation, team, record->peer)) {
        const struct request request = request_of(record, team, in);
        shelf_give(&emulation->passing);
        return take(emulation, &request);
    }
    const int code =
        MPI_Recv(in, (int)record->bytes, MPI_BYTE, record->peer, record->tag, team->comm, &status);
    if (code == MPI_SUCCESS)
        check_message(emulation, in, record->bytes, team, record->peer, &status);
    shelf_give(&emulation->passing);
    return code;
}

/* The record after it is what it receives. */
int perform_exchange(struct emulation *emulation, const struct entry *entry) {
    const struct trace_record *out = &entry->record;
    const struct team *team = team_of(emulation, entry);
    struct entry other;
    stream_next(&emulation->stream, &emulation->place, &other);
    const struct trace_record *in_record = &other.record;
    unsigned char *in = emulation->in + shelf_take(&emulation->passing, in_record->bytes);
    MPI_Status status;
    spoil(emulation, in, in_record->bytes);
    if (mail_carries(emulation, team, out->peer) || mail_carries(emulation, team, in_record->peer)) {
        shelf_give(&emulation->passing);
        return exchange_by_mail(emulation, out, in_record, team, in);
    }
    const int code =
        MPI_Sendrecv(emulation->out, (int)out->bytes, MPI_BYTE, out->peer, out->tag, in,
                     (int)in_record->bytes, MPI_BYTE, in_record->peer, in_record->tag, team->comm, &status);
    if (code == MPI_SUCCESS)
        check_message(emulation, in, in_record->bytes, team, in_record->peer, &status);
    shelf_give(&emulation->passing);
    return code;
}

int perform_begin(struct emulation *emulation, const struct entry *entry) {
    const struct trace_record *record = &entry->record;
    const struct team *team = team_of(emulation, entry);
    struct request *request = &emulation->requests[record->request];
    *request = (struct request){.handle = MPI_REQUEST_NULL,
                                .is_receive = record->kind == TRACE_IRECV,
                                .is_carried = mail_carries(emulation, team, record->peer),
                                .tag = record->tag,
                                .team = team,
                                .source = record->peer,
                                .bytes = record->bytes};
    if (!request->is_receive && request->is_carried)
        return mail_send(emulation, record);
    if (!request->is_receive)
        return MPI_Isend(emulation->out, (int)record->bytes, MPI_BYTE, record->peer, record->tag, team->comm,
                         &request->handle);
    unsigned char *in = emulation->in + shelf_take(&emulation->passing, record->bytes);
    request->in = in;
    spoil(emulation, in, record->bytes);
    if (request->is_carried)
        return MPI_SUCCESS;
    return MPI_Irecv(in, (int)record->bytes, MPI_BYTE, record->peer, record->tag, team->comm,
                     &request->handle);
}

int perform_make(struct emulation *emulation, const struct entry *entry) {
    const struct trace_record *record = &entry->record;
    const struct team *team = team_of(emulation, entry);
    struct request *request = &emulation->requests[record->request];
    *request = (struct request){.handle = MPI_REQUEST_NULL,
                                .is_receive = record->kind == TRACE_RECV_INIT,
                                .stays = true,
                                .team = team,
                                .source = record->peer,
                                .bytes = record->bytes};
    if (!request->is_receive)
        return MPI_Send_init(emulation->out, (int)record->bytes, MPI_BYTE, record->peer, record->tag,
                             team->comm, &request->handle);
    unsigned char *in = emulation->stay + shelf_take(&emulation->staying, record->bytes);
    request->in = in;
    return MPI_Recv_init(in, (int)record->bytes, MPI_BYTE, record->peer, record->tag, team->comm,
                         &request->handle);
}

/* The records of one call: this one, and those after it that are marked as its others. Their numbers are in
 * `numbers`; returns how many. */
static int gather_call(struct emulation *emulation, const struct entry *entry) {
    struct entry next;
    int count = 0;
    emulation->numbers[count++] = entry->record.request;
    for (uint64_t place = emulation->place; entry->record.flags & TRACE_FIRST; emulation->place = place) {
        if (stream_next(&emulation->stream, &place, &next) != STREAM_ENTRY ||
            next.record.kind != entry->record.kind || !(next.record.flags & TRACE_NEXT) ||
            (size_t)count == emulation->survey.requests)
            break;
        emulation->numbers[count++] = next.record.request;
    }
    for (int i = 0; i < count; i++)
        emulation->handles[i] = emulation->requests[emulation->numbers[i]].handle;
    return count;
}

static void keep_handles(struct emulation *emulation, int count) {
    for (int i = 0; i < count; i++)
        emulation->requests[emulation->numbers[i]].handle = emulation->handles[i];
}

int perform_start(struct emulation *emulation, const struct entry *entry) {
    const int count = gather_call(emulation, entry);
    for (int i = 0; i < count; i++) {
        const struct request *request = &emulation->requests[emulation->numbers[i]];
        if (request->is_receive && request->stays)
            spoil(emulation, request->in, request->bytes);
    }
    const int code = MPI_Startall(count, emulation->handles);
    keep_handles(emulation, count);
    return code;
}

/* What came with a request that is complete; one that goes by mail is made now. */
static int finish(struct emulation *emulation, struct request *request, const MPI_Status *status) {
    int code = MPI_SUCCESS;
    if (request->is_together)
        check_neighbours(emulation, request->team, request->counts);
    if (!request->is_receive)
        return code;
    if (request->is_carried)
        code = take(emulation, request);
    else
        check_message(emulation, request->in, request->bytes, request->team, request->source, status);
    if (!request->stays)
        shelf_give(&emulation->passing);
    return code;
}

int perform_wait(struct emulation *emulation, const struct entry *entry) {
    const int count = gather_call(emulation, entry);
    MPI_Status *statuses = emulation->checks ? emulation->statuses : MPI_STATUSES_IGNORE;
    int code = MPI_Waitall(count, emulation->handles, statuses);
    keep_handles(emulation, count);
    for (int i = 0; i < count && code == MPI_SUCCESS; i++)
        code = finish(emulation, &emulation->requests[emulation->numbers[i]], &emulation->statuses[i]);
    return code;
}

int perform_free(struct emulation *emulation, const struct entry *entry) {
    struct request *request = &emulation->requests[entry->record.request];
    return request->handle == MPI_REQUEST_NULL ? MPI_SUCCESS : MPI_Request_free(&request->handle);
}
