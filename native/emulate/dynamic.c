/* Who comes first is served first. The stream has one order in which it could be; here it is as it comes. */
#include <stdlib.h>

#include "core/watchdog.h"
#include "emulate/emulation.h"

/* --- client and server -----------------------------------------------------------------------------------
 */

/* One request and its answer. */
struct service {
    uint64_t bytes, compute_ns, answer_bytes;
    int tag, answer_tag;
    size_t next; /* of the same client; NO_SERVICE: none */
};

/* The services of each client, in its order. */
struct services {
    struct service *items;
    size_t count, room;
    size_t *first, *last; /* by client */
    int clients;
};

#define NO_SERVICE SIZE_MAX

static void services_free(struct services *services) {
    free(services->items);
    free(services->first);
    free(services->last);
}

static int services_new(struct emulation *emulation, struct services *services, int clients) {
    *services = (struct services){.clients = clients};
    services->first = malloc((size_t)clients * sizeof *services->first);
    services->last = malloc((size_t)clients * sizeof *services->last);
    if (services->first == NULL || services->last == NULL)
        return emulation_failed(emulation, "no memory for %d clients", clients);
    for (int client = 0; client < clients; client++)
        services->first[client] = services->last[client] = NO_SERVICE;
    return MPI_SUCCESS;
}

static int append(struct emulation *emulation, struct services *services, int client,
                  struct service service) {
    if (services->count == services->room) {
        const size_t room = 2 * services->room + 64;
        struct service *items = realloc(services->items, room * sizeof *items);
        if (items == NULL)
            return emulation_failed(emulation, "no memory for %zu services", room);
        services->items = items;
        services->room = room;
    }
    service.next = NO_SERVICE;
    if (services->last[client] == NO_SERVICE)
        services->first[client] = services->count;
    else
        services->items[services->last[client]].next = services->count;
    services->last[client] = services->count;
    services->items[services->count++] = service;
    return MPI_SUCCESS;
}

/* Requests and answers until the mark that ends them. */
static int read_services(struct emulation *emulation, struct services *services) {
    struct entry asked;
    struct entry answered;
    for (;;) {
        if (stream_next(&emulation->stream, &emulation->place, &asked) != STREAM_ENTRY)
            return emulation_failed(emulation, "the trace ends while a server serves");
        if (entry_is_mark(&asked, TRACE_MARK_DONE))
            return MPI_SUCCESS;
        const bool is_whole = stream_next(&emulation->stream, &emulation->place, &answered) == STREAM_ENTRY &&
                              asked.record.kind == TRACE_RECV && answered.record.kind == TRACE_SEND &&
                              asked.record.peer == answered.record.peer;
        if (!is_whole)
            return emulation_failed(emulation, "a request to a server without its answer");
        const struct service service = {.bytes = asked.record.bytes,
                                        .compute_ns = answered.compute_ns,
                                        .answer_bytes = answered.record.bytes,
                                        .tag = asked.record.tag,
                                        .answer_tag = answered.record.tag};
        const int code = append(emulation, services, asked.record.peer, service);
        if (code != MPI_SUCCESS)
            return code;
    }
}

static int serve_next(struct emulation *emulation, struct services *services, const struct team *team) {
    MPI_Status status;
    unsigned char *in = emulation->in;
    spoil(emulation, in, emulation->survey.in_bytes);
    int code = MPI_Recv(in, (int)emulation->survey.in_bytes, MPI_BYTE, MPI_ANY_SOURCE, services->items[0].tag,
                        team->comm, &status);
    watchdog_beat();
    if (code != MPI_SUCCESS)
        return code;
    const size_t number = services->first[status.MPI_SOURCE];
    if (number == NO_SERVICE)
        return emulation_failed(emulation, "rank %d asks more often than it should",
                                team->members[status.MPI_SOURCE]);
    const struct service *service = &services->items[number];
    services->first[status.MPI_SOURCE] = service->next;
    check_message(emulation, in, service->bytes, team, status.MPI_SOURCE, &status);
    emulation_compute(emulation, service->compute_ns);
    return MPI_Send(emulation->out, (int)service->answer_bytes, MPI_BYTE, status.MPI_SOURCE,
                    service->answer_tag, team->comm);
}

int perform_serve(struct emulation *emulation, const struct entry *entry) {
    const struct team *team = team_at(&emulation->teams, entry->record.comm);
    struct services services;
    int code = services_new(emulation, &services, team->ranks);
    if (code == MPI_SUCCESS)
        code = read_services(emulation, &services);
    for (size_t i = 0; i < services.count && code == MPI_SUCCESS; i++)
        code = serve_next(emulation, &services, team);
    services_free(&services);
    return code;
}

/* --- task farm -------------------------------------------------------------------------------------------
 */

/* Tags beyond those of all steps: a result, that there is no more, and each task has its own, so that the
 * worker knows it by that, however small the message. */
enum { TAG_RESULT = 1 << 14, TAG_NO_MORE, TAG_TASK };

static int check_tags(struct emulation *emulation, const struct farm *farm) {
    int *most = NULL;
    int known = 0;
    const int code = MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &known);
    if (code != MPI_SUCCESS || !known || farm->tasks <= (uint64_t)(*most - TAG_TASK))
        return code;
    return emulation_failed(emulation, "a farm of %llu tasks: this MPI library can tell %d from each other",
                            (unsigned long long)farm->tasks, *most - TAG_TASK);
}

/* The next task to a worker, or that there is none; its number is kept by worker. */
static int give(struct emulation *emulation, const struct farm *farm, uint64_t *given, int worker,
                uint64_t *at_work) {
    if (*given >= farm->tasks)
        return MPI_Send(emulation->out, 0, MPI_BYTE, worker, TAG_NO_MORE, farm->team->comm);
    at_work[worker] = (*given)++;
    return MPI_Send(emulation->out, (int)farm->items[at_work[worker]].size, MPI_BYTE, worker,
                    TAG_TASK + (int)at_work[worker], farm->team->comm);
}

static int lead(struct emulation *emulation, const struct farm *farm, int master, uint64_t *at_work) {
    uint64_t given = 0;
    int code = MPI_SUCCESS;
    for (int worker = 0; worker < farm->team->ranks && code == MPI_SUCCESS; worker++)
        if (worker != master)
            code = give(emulation, farm, &given, worker, at_work);
    for (uint64_t back = 0; back < farm->tasks && code == MPI_SUCCESS; back++) {
        MPI_Status status;
        spoil(emulation, emulation->in, emulation->survey.in_bytes);
        code = MPI_Recv(emulation->in, (int)emulation->survey.in_bytes, MPI_BYTE, MPI_ANY_SOURCE, TAG_RESULT,
                        farm->team->comm, &status);
        watchdog_beat();
        if (code != MPI_SUCCESS)
            break;
        check_message(emulation, emulation->in, farm->items[at_work[status.MPI_SOURCE]].result, farm->team,
                      status.MPI_SOURCE, &status);
        code = give(emulation, farm, &given, status.MPI_SOURCE, at_work);
    }
    return code;
}

static int work(struct emulation *emulation, const struct farm *farm, int master) {
    for (;;) {
        MPI_Status status;
        spoil(emulation, emulation->in, emulation->survey.in_bytes);
        int code = MPI_Recv(emulation->in, (int)emulation->survey.in_bytes, MPI_BYTE, master, MPI_ANY_TAG,
                            farm->team->comm, &status);
        watchdog_beat();
        if (code != MPI_SUCCESS || status.MPI_TAG == TAG_NO_MORE)
            return code;
        const uint64_t number = (uint64_t)(status.MPI_TAG - TAG_TASK);
        if (status.MPI_TAG < TAG_TASK || number >= farm->tasks)
            return emulation_failed(emulation, "what came from a farm's master is no task");
        const struct task *task = &farm->items[number];
        check_message(emulation, emulation->in, task->size, farm->team, master, &status);
        emulation_compute(emulation, task->compute_ns);
        code = MPI_Send(emulation->out, (int)task->result, MPI_BYTE, master, TAG_RESULT, farm->team->comm);
        if (code != MPI_SUCCESS)
            return code;
    }
}

/* The stream has who did what on a network without delay: that is passed over. */
static int pass_over(struct emulation *emulation) {
    struct entry entry;
    do
        if (stream_next(&emulation->stream, &emulation->place, &entry) != STREAM_ENTRY)
            return emulation_failed(emulation, "the trace ends within a task farm");
    while (!entry_is_mark(&entry, TRACE_MARK_DONE));
    return MPI_SUCCESS;
}

int perform_farm(struct emulation *emulation, const struct entry *entry) {
    const struct farm *farm = &emulation->learned.farms[emulation->next_farm++];
    const int master = entry->record.peer;
    int code = check_tags(emulation, farm);
    if (code == MPI_SUCCESS)
        code = pass_over(emulation);
    if (code != MPI_SUCCESS)
        return code;
    if (farm->team->rank != master)
        return work(emulation, farm, master);
    uint64_t *at_work = calloc((size_t)farm->team->ranks, sizeof *at_work);
    if (at_work == NULL)
        return emulation_failed(emulation, "no memory for a farm of %d ranks", farm->team->ranks);
    code = lead(emulation, farm, master, at_work);
    free(at_work);
    return code;
}
