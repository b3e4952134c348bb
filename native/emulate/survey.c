#include "emulate/survey.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>

enum { PROGRAMS_MOST = 1 << 16, REQUESTS_MOST = 1 << 24, WINDOWS_MOST = 1 << 20 };

/* A survey while it is made. */
struct walk {
    struct survey *survey;
    const struct stream *stream;
    const struct learned *learned;
    struct failure *failure;
    uint64_t at, next; /* slots: of the entry, and of the next one */
    bool *is_receive;  /* of each request, what it was made for last */
    size_t requests;   /* there is room for */
    bool has_begun;
    const struct entry *entry;
    const struct team *team;
    size_t next_counts, next_farm;
};

static int bad(const struct walk *walk, const char *what) {
    return failure_set(walk->failure, "trace", "", "record %" PRIu64 " of kind %u: %s", walk->at,
                       walk->entry->record.kind, what);
}

static void at_least(size_t *most, uint64_t bytes) {
    if (bytes > *most)
        *most = (size_t)bytes;
}

static int check_message(const struct walk *walk) {
    const struct trace_record *record = &walk->entry->record;
    if (record->peer < 0 || record->peer >= walk->team->ranks)
        return bad(walk, "a message to or from a rank that is not there");
    if (record->bytes > INT_MAX)
        return bad(walk, "a message of 2 GiB or more: MPI cannot send it in one piece");
    return 0;
}

static int check_request(struct walk *walk, bool is_receive) {
    const uint32_t number = walk->entry->record.request;
    if (number == 0 || number > REQUESTS_MOST)
        return bad(walk, "a request without a number that can be");
    at_least(&walk->survey->requests, (uint64_t)number + 1);
    if (walk->survey->requests > walk->requests) {
        const size_t room = 2 * walk->survey->requests;
        bool *more = realloc(walk->is_receive, room * sizeof *more);
        if (more == NULL)
            return failure_set(walk->failure, "system", "", "no memory for requests");
        for (size_t i = walk->requests; i < room; i++)
            more[i] = false;
        walk->is_receive = more;
        walk->requests = room;
    }
    walk->is_receive[number] = is_receive;
    return 0;
}

static int see_send(const struct walk *walk) {
    at_least(&walk->survey->out_bytes, walk->entry->record.bytes);
    return check_message(walk);
}

/* Room for a message that is received at once. */
static void pass_through(struct survey *survey, uint64_t bytes) {
    at_least(&survey->in_bytes, bytes);
    shelf_take(&survey->passing, (size_t)bytes);
    shelf_give(&survey->passing);
}

static int see_receive(const struct walk *walk) {
    if (check_message(walk) != 0)
        return -1;
    pass_through(walk->survey, walk->entry->record.bytes);
    return 0;
}

/* The receive that is the other half of it stands next. */
static int see_exchange(const struct walk *walk) {
    struct entry next;
    uint64_t place = walk->next;
    if (stream_next(walk->stream, &place, &next) != STREAM_ENTRY || next.record.kind != TRACE_RECV_PART ||
        next.record.comm != walk->entry->record.comm)
        return bad(walk, "half of an exchange");
    return see_send(walk);
}

static int see_begun_send(struct walk *walk) { return check_request(walk, false) == 0 ? see_send(walk) : -1; }

static int see_begun_receive(struct walk *walk) {
    if (check_request(walk, true) != 0 || check_message(walk) != 0)
        return -1;
    shelf_take(&walk->survey->passing, (size_t)walk->entry->record.bytes);
    return 0;
}

static int see_staying_receive(struct walk *walk) {
    if (check_request(walk, false) != 0 || check_message(walk) != 0)
        return -1;
    shelf_take(&walk->survey->stay, (size_t)walk->entry->record.bytes);
    return 0;
}

static int see_wait(struct walk *walk) {
    const uint32_t number = walk->entry->record.request;
    if (number < walk->requests && walk->is_receive[number])
        shelf_give(&walk->survey->passing);
    return check_request(walk, false);
}

/* Of all ranks of a team, or of one for each rank. */
static int see_together(const struct walk *walk, bool for_each) {
    const struct trace_record *record = &walk->entry->record;
    const uint64_t pieces = for_each ? (uint64_t)walk->team->ranks : 1;
    if (record->bytes > INT_MAX)
        return bad(walk, "a collective with 2 GiB or more for a rank");
    at_least(&walk->survey->together_bytes, record->bytes * pieces);
    return 0;
}

static int see_rooted(const struct walk *walk, bool for_each) {
    const int32_t root = walk->entry->record.peer;
    if (root < 0 || root >= walk->team->ranks)
        return bad(walk, "a collective whose root is not there");
    return see_together(walk, for_each);
}

static int see_neighbours(struct walk *walk) {
    const struct team *team = walk->team;
    uint64_t out = 0;
    uint64_t in = 0;
    if (walk->entry->payload_bytes / sizeof(uint64_t) < (uint64_t)team->targets)
        return bad(walk, "not a size for each neighbour");
    for (int i = 0; i < team->targets; i++) {
        const uint64_t bytes = entry_number(walk->entry, (uint64_t)i);
        out = bytes > INT_MAX ? UINT64_C(1) << 32 : out + bytes;
    }
    for (int i = 0; i < team->sources; i++)
        in += (uint64_t)walk->learned->counts[walk->next_counts++];
    if (out > INT_MAX || in > INT_MAX)
        return bad(walk, "2 GiB or more between neighbours");
    at_least(&walk->survey->together_bytes, out);
    at_least(&walk->survey->together_bytes, in);
    return walk->entry->record.flags & TRACE_NONBLOCKING ? check_request(walk, false) : 0;
}

static int see_window(const struct walk *walk) {
    const int32_t tag = walk->entry->record.tag;
    if (tag < 0 || tag > WINDOWS_MOST)
        return bad(walk, "a window without a number that can be");
    at_least(&walk->survey->windows, (uint64_t)tag + 1);
    return 0;
}

static int see_put(const struct walk *walk) {
    const uint64_t place = entry_number(walk->entry, 0);
    if (check_message(walk) != 0 || see_window(walk) != 0)
        return -1;
    if (place > INT64_MAX - walk->entry->record.bytes)
        return bad(walk, "memory of another rank that cannot be");
    at_least(&walk->survey->put_bytes, place + walk->entry->record.bytes);
    return 0;
}

static void begin_body(struct walk *walk) {
    if (!walk->has_begun)
        walk->survey->body = walk->at;
    walk->has_begun = true;
}

static int begin_iteration(struct walk *walk) {
    struct survey *survey = walk->survey;
    const int32_t program = walk->entry->record.tag;
    if (program < 1 || program > PROGRAMS_MOST)
        return bad(walk, "an iteration of a program that cannot be");
    if ((size_t)program >= survey->programs) {
        uint64_t *iterations = realloc(survey->iterations, ((size_t)program + 1) * sizeof *iterations);
        if (iterations == NULL)
            return failure_set(walk->failure, "system", "", "no memory for programs");
        for (size_t i = survey->programs; i <= (size_t)program; i++)
            iterations[i] = 0;
        survey->iterations = iterations;
        survey->programs = (size_t)program + 1;
    }
    survey->iterations[program]++;
    begin_body(walk);
    return 0;
}

/* The sizes of a rank's own part stand in its stream; a worker may get any task. */
static int see_farm(struct walk *walk) {
    if (walk->next_farm >= walk->learned->farm_of)
        return bad(walk, "a farm that nobody was told of");
    const struct farm *farm = &walk->learned->farms[walk->next_farm++];
    for (uint64_t i = 0; i < farm->tasks; i++) {
        const struct task *task = &farm->items[i];
        if (task->size > INT_MAX || task->result > INT_MAX)
            return bad(walk, "a task or a result of 2 GiB or more");
        const uint64_t larger = task->size > task->result ? task->size : task->result;
        at_least(&walk->survey->out_bytes, larger);
        pass_through(walk->survey, larger);
    }
    return 0;
}

static int see_mark(struct walk *walk) {
    switch (walk->entry->record.request) {
    case TRACE_MARK_ITERATION:
        return begin_iteration(walk);
    case TRACE_MARK_FARM:
        return see_farm(walk);
    case TRACE_MARK_END:
        begin_body(walk); /* of a rank that no program has */
        walk->survey->tail = walk->next;
        return 0;
    default:
        return 0;
    }
}

static int see(struct walk *walk) {
    switch (walk->entry->record.kind) {
    case TRACE_COMMUNICATOR:
    case TRACE_FREE:
    case TRACE_BARRIER:
        return 0;
    case TRACE_PHASE:
        return see_mark(walk);
    case TRACE_SEND:
        return see_send(walk);
    case TRACE_RECV:
    case TRACE_RECV_PART:
        return see_receive(walk);
    case TRACE_SENDRECV:
        return see_exchange(walk);
    case TRACE_ISEND:
    case TRACE_SEND_INIT:
        return see_begun_send(walk);
    case TRACE_IRECV:
        return see_begun_receive(walk);
    case TRACE_RECV_INIT:
        return see_staying_receive(walk);
    case TRACE_START:
        return check_request(walk, false);
    case TRACE_WAIT:
        return see_wait(walk);
    case TRACE_BCAST:
    case TRACE_REDUCE:
        return see_rooted(walk, false);
    case TRACE_GATHER:
    case TRACE_SCATTER:
        return see_rooted(walk, true);
    case TRACE_ALLREDUCE:
    case TRACE_SCAN:
    case TRACE_EXSCAN:
        return see_together(walk, false);
    case TRACE_ALLGATHER:
    case TRACE_ALLTOALL:
    case TRACE_REDUCE_SCATTER_BLOCK:
        return see_together(walk, true);
    case TRACE_NEIGHBOR_ALLTOALLV:
        return see_neighbours(walk);
    case TRACE_WINDOW:
    case TRACE_FENCE:
    case TRACE_WINDOW_FREE:
        return see_window(walk);
    case TRACE_PUT:
        return see_put(walk);
    default:
        return bad(walk, "no pattern has it: is this the trace of a program?");
    }
}

int survey_make(struct survey *survey, const struct stream *stream, const struct teams *teams,
                const struct learned *learned, struct failure *failure) {
    struct entry entry;
    struct walk walk = {
        .survey = survey, .stream = stream, .learned = learned, .failure = failure, .entry = &entry};
    *survey = (struct survey){.requests = 1, .programs = 1};
    survey->iterations = calloc(1, sizeof *survey->iterations);
    if (survey->iterations == NULL)
        return failure_set(failure, "system", "", "no memory for programs");
    int result = 0;
    while (result == 0 && stream_next(stream, &walk.next, &entry) == STREAM_ENTRY) {
        walk.team = team_at(teams, entry.record.comm);
        if (walk.team == NULL && entry.record.kind != TRACE_COMMUNICATOR)
            result = bad(&walk, "on a communicator that is not there");
        else
            result = see(&walk);
        walk.at = walk.next;
    }
    free(walk.is_receive);
    if (result == 0 && survey->tail == 0)
        return failure_set(failure, "trace", "",
                           "the trace is not that of a pattern: it has no last iteration");
    return result;
}

void survey_free(struct survey *survey) {
    free(survey->iterations);
    *survey = (struct survey){0};
}
