/* Collectives of a team, and exchanges between neighbours of a graph. */
#include "core/payload.h"
#include "emulate/emulation.h"

/* Of a call: where everything is. */
struct call {
    const struct team *team;
    enum trace_kind kind;
    int size; /* of a rank's part [B] */
    int root;
    unsigned char *out, *in;
};

enum { DOUBLE_BYTES = sizeof(double), VALUES = 1000, TO_ALL = -1 };

/* --- what is added up: doubles, or bytes where the size is no multiple of those ------------------------- */

static bool adds_up(enum trace_kind kind) {
    return kind == TRACE_REDUCE || kind == TRACE_ALLREDUCE || kind == TRACE_REDUCE_SCATTER_BLOCK ||
           kind == TRACE_SCAN || kind == TRACE_EXSCAN;
}

static bool is_doubles(const struct call *call) { return call->size % DOUBLE_BYTES == 0; }

static MPI_Datatype type_of(const struct call *call) {
    return is_doubles(call) ? MPI_DOUBLE : MPI_UNSIGNED_CHAR;
}

static int count_of(const struct call *call) {
    return is_doubles(call) ? call->size / DOUBLE_BYTES : call->size;
}

static uint64_t value(uint64_t index, uint64_t rank) { return index % VALUES + rank + 1; }

/* Of the first so many ranks. */
static uint64_t sum(uint64_t index, uint64_t ranks) {
    return ranks * (index % VALUES) + ranks * (ranks + 1) / 2;
}

static void put_values(const struct call *call, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t one = value(i, (uint64_t)call->team->rank);
        if (is_doubles(call))
            ((double *)(void *)call->out)[i] = (double)one;
        else
            call->out[i] = (unsigned char)one;
    }
}

static bool has_sums(const struct call *call, uint64_t first, uint64_t ranks) {
    for (uint64_t i = 0; i < (uint64_t)count_of(call); i++) {
        const uint64_t expected = sum(first + i, ranks);
        const double found = is_doubles(call) ? ((const double *)(const void *)call->in)[i] : call->in[i];
        const double wanted = is_doubles(call) ? (double)expected : (double)(unsigned char)expected;
        if (found < wanted || found > wanted)
            return false;
    }
    return true;
}

/* --- what is carried: each message has bytes of its own --------------------------------------------------
 */

static uint64_t seed_of(int from, int to) {
    return ((uint64_t)(unsigned)(from + 1) << 32) + (uint64_t)(unsigned)(to + 2);
}

static void put(unsigned char *place, uint64_t bytes, int from, int to) {
    payload_fill(place, 0, bytes, seed_of(from, to), 0);
}

static bool has(const unsigned char *place, uint64_t bytes, int from, int to) {
    return payload_matches(place, 0, bytes, seed_of(from, to), 0);
}

static unsigned char *piece(const struct call *call, unsigned char *of, int rank) {
    return of + (size_t)rank * (size_t)call->size;
}

/* --- before and after ------------------------------------------------------------------------------------
 */

static void fill(const struct call *call) {
    const struct team *team = call->team;
    const uint64_t bytes = (uint64_t)call->size;
    const bool is_root = team->rank == call->root;
    if (adds_up(call->kind))
        put_values(call, (uint64_t)count_of(call) *
                             (call->kind == TRACE_REDUCE_SCATTER_BLOCK ? (uint64_t)team->ranks : 1));
    else if (call->kind == TRACE_GATHER || call->kind == TRACE_ALLGATHER ||
             (call->kind == TRACE_BCAST && is_root))
        put(call->out, bytes, team->rank, TO_ALL);
    else if (call->kind == TRACE_ALLTOALL || (call->kind == TRACE_SCATTER && is_root))
        for (int rank = 0; rank < team->ranks; rank++)
            put(piece(call, call->out, rank), bytes, team->rank, rank);
}

static bool has_from_all(const struct call *call, int to) {
    for (int rank = 0; rank < call->team->ranks; rank++)
        if (!has(piece(call, call->in, rank), (uint64_t)call->size, rank, to))
            return false;
    return true;
}

static bool is_right(const struct call *call) {
    const struct team *team = call->team;
    const uint64_t own = (uint64_t)team->rank;
    const bool is_root = team->rank == call->root;
    switch (call->kind) {
    case TRACE_BCAST:
        return has(call->out, (uint64_t)call->size, call->root, TO_ALL);
    case TRACE_SCATTER:
        return has(call->in, (uint64_t)call->size, call->root, team->rank);
    case TRACE_GATHER:
        return !is_root || has_from_all(call, TO_ALL);
    case TRACE_ALLGATHER:
        return has_from_all(call, TO_ALL);
    case TRACE_ALLTOALL:
        return has_from_all(call, team->rank);
    case TRACE_REDUCE:
        return !is_root || has_sums(call, 0, (uint64_t)team->ranks);
    case TRACE_ALLREDUCE:
        return has_sums(call, 0, (uint64_t)team->ranks);
    case TRACE_REDUCE_SCATTER_BLOCK:
        return has_sums(call, own * (uint64_t)count_of(call), (uint64_t)team->ranks);
    case TRACE_SCAN:
        return has_sums(call, 0, own + 1);
    case TRACE_EXSCAN:
        return own == 0 || has_sums(call, 0, own);
    default:
        return true;
    }
}

/* --- the calls -------------------------------------------------------------------------------------------
 */

static int make_call(const struct call *call) {
    const MPI_Comm comm = call->team->comm;
    const int size = call->size;
    const int count = count_of(call);
    switch (call->kind) {
    case TRACE_BARRIER:
        return MPI_Barrier(comm);
    case TRACE_BCAST:
        return MPI_Bcast(call->out, size, MPI_BYTE, call->root, comm);
    case TRACE_GATHER:
        return MPI_Gather(call->out, size, MPI_BYTE, call->in, size, MPI_BYTE, call->root, comm);
    case TRACE_SCATTER:
        return MPI_Scatter(call->out, size, MPI_BYTE, call->in, size, MPI_BYTE, call->root, comm);
    case TRACE_ALLGATHER:
        return MPI_Allgather(call->out, size, MPI_BYTE, call->in, size, MPI_BYTE, comm);
    case TRACE_ALLTOALL:
        return MPI_Alltoall(call->out, size, MPI_BYTE, call->in, size, MPI_BYTE, comm);
    case TRACE_REDUCE:
        return MPI_Reduce(call->out, call->in, count, type_of(call), MPI_SUM, call->root, comm);
    case TRACE_ALLREDUCE:
        return MPI_Allreduce(call->out, call->in, count, type_of(call), MPI_SUM, comm);
    case TRACE_REDUCE_SCATTER_BLOCK:
        return MPI_Reduce_scatter_block(call->out, call->in, count, type_of(call), MPI_SUM, comm);
    case TRACE_SCAN:
        return MPI_Scan(call->out, call->in, count, type_of(call), MPI_SUM, comm);
    default:
        return MPI_Exscan(call->out, call->in, count, type_of(call), MPI_SUM, comm);
    }
}

int perform_together(struct emulation *emulation, const struct entry *entry) {
    const struct trace_record *record = &entry->record;
    const struct call call = {.team = team_at(&emulation->teams, record->comm),
                              .kind = (enum trace_kind)record->kind,
                              .size = (int)record->bytes,
                              .root = record->peer,
                              .out = emulation->together_out,
                              .in = emulation->together_in};
    if (emulation->checks)
        fill(&call);
    const int code = make_call(&call);
    if (emulation->checks && code == MPI_SUCCESS && !is_right(&call))
        emulation->wrong++;
    return code;
}

/* --- neighbours ------------------------------------------------------------------------------------------
 */

/* Sizes and places of the messages of one exchange, in the numbers that the emulation keeps for that. */
static void lay_out(struct emulation *emulation, const struct entry *entry, const struct team *team,
                    const int *in_counts) {
    int at = 0;
    for (int i = 0; i < team->targets; i++) {
        emulation->out_counts[i] = (int)entry_number(entry, (uint64_t)i);
        emulation->out_places[i] = at;
        at += emulation->out_counts[i];
    }
    at = 0;
    for (int i = 0; i < team->sources; i++) {
        emulation->in_places[i] = at;
        at += in_counts[i];
    }
}

int perform_neighbours(struct emulation *emulation, const struct entry *entry) {
    const struct trace_record *record = &entry->record;
    const struct team *team = team_at(&emulation->teams, record->comm);
    const size_t first = emulation->next_counts;
    const int *in_counts = emulation->learned.counts + first;
    emulation->next_counts += (size_t)team->sources;
    lay_out(emulation, entry, team, in_counts);
    for (int i = 0; emulation->checks && i < team->targets; i++)
        put(emulation->together_out + emulation->out_places[i], (uint64_t)emulation->out_counts[i],
            team->rank, TO_ALL);
    if (!(record->flags & TRACE_NONBLOCKING)) {
        const int code = MPI_Neighbor_alltoallv(emulation->together_out, emulation->out_counts,
                                                emulation->out_places, MPI_BYTE, emulation->together_in,
                                                in_counts, emulation->in_places, MPI_BYTE, team->comm);
        if (code == MPI_SUCCESS)
            check_neighbours(emulation, team, first);
        return code;
    }
    struct request *request = &emulation->requests[record->request];
    *request =
        (struct request){.handle = MPI_REQUEST_NULL, .is_together = true, .team = team, .counts = first};
    return MPI_Ineighbor_alltoallv(emulation->together_out, emulation->out_counts, emulation->out_places,
                                   MPI_BYTE, emulation->together_in, in_counts, emulation->in_places,
                                   MPI_BYTE, team->comm, &request->handle);
}

void check_neighbours(struct emulation *emulation, const struct team *team, size_t counts) {
    const int *sources = team->members + team->ranks;
    int at = 0;
    for (int i = 0; emulation->checks && i < team->sources; i++) {
        const int bytes = emulation->learned.counts[counts + (size_t)i];
        if (!has(emulation->together_in + at, (uint64_t)bytes, sources[i], TO_ALL))
            emulation->wrong++;
        at += bytes;
    }
}
