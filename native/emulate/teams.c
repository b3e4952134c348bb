#include "emulate/teams.h"

#include <stdlib.h>
#include <string.h>

enum { USUAL = 2 }; /* the world and the rank alone */

/* What a communicator's payload says. */
struct described {
    struct trace_communicator head;
    int *numbers; /* members, sources, targets */
};

static int damaged(struct failure *failure) {
    return failure_set(failure, "trace", "", "the trace describes a communicator that cannot be");
}

static int no_memory(struct failure *failure) {
    return failure_set(failure, "system", "", "no memory for communicators");
}

static int describe(const struct entry *entry, int ranks, struct described *described,
                    struct failure *failure) {
    if (entry->payload_bytes < sizeof described->head)
        return damaged(failure);
    memcpy(&described->head, entry->payload, sizeof described->head);
    const struct trace_communicator *head = &described->head;
    const uint64_t count = (uint64_t)head->members + head->sources + head->targets;
    if (head->inter != 0 || head->members == 0 || head->members > (uint32_t)ranks || head->rank < 0 ||
        (uint32_t)head->rank >= head->members ||
        count > (entry->payload_bytes - sizeof *head) / sizeof(int32_t))
        return damaged(failure);
    described->numbers = malloc(count * sizeof *described->numbers);
    if (described->numbers == NULL)
        return no_memory(failure);
    memcpy(described->numbers, entry->payload + sizeof *head, count * sizeof *described->numbers);
    for (uint64_t i = 0; i < count; i++) {
        const int most = i < head->members ? ranks : (int)head->members;
        if (described->numbers[i] < 0 || described->numbers[i] >= most) {
            free(described->numbers);
            return damaged(failure);
        }
    }
    return 0;
}

static int grow(struct teams *teams, size_t count, struct failure *failure) {
    if (count <= teams->count)
        return 0;
    struct team *items = realloc(teams->items, count * sizeof *items);
    if (items == NULL)
        return no_memory(failure);
    for (size_t i = teams->count; i < count; i++)
        items[i] = (struct team){.comm = MPI_COMM_NULL};
    *teams = (struct teams){items, count};
    return 0;
}

/* Its members only take part. */
static int make_of_members(const struct described *described, MPI_Comm *comm) {
    MPI_Group world = MPI_GROUP_NULL;
    MPI_Group members = MPI_GROUP_NULL;
    int code = MPI_Comm_group(MPI_COMM_WORLD, &world);
    if (code == MPI_SUCCESS)
        code = MPI_Group_incl(world, (int)described->head.members, described->numbers, &members);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_create_group(MPI_COMM_WORLD, members, 0, comm);
    if (members != MPI_GROUP_NULL)
        MPI_Group_free(&members);
    if (world != MPI_GROUP_NULL)
        MPI_Group_free(&world);
    return code;
}

static int add_graph(const struct described *described, MPI_Comm *comm) {
    MPI_Comm plain = *comm;
    const int sources = (int)described->head.sources;
    const int targets = (int)described->head.targets;
    const int *first = described->numbers + described->head.members;
    int code = MPI_Dist_graph_create_adjacent(plain, sources, first, MPI_UNWEIGHTED, targets, first + sources,
                                              MPI_UNWEIGHTED, MPI_INFO_NULL, 0, comm);
    const int freed = MPI_Comm_free(&plain);
    return code == MPI_SUCCESS ? freed : code;
}

static int make(struct teams *teams, const struct entry *entry, bool is_graph, int ranks,
                struct failure *failure) {
    struct described described;
    if (describe(entry, ranks, &described, failure) != 0)
        return -1;
    const uint16_t number = entry->record.comm;
    int result = grow(teams, (size_t)number + 1, failure);
    struct team team = {.comm = MPI_COMM_NULL, .members = described.numbers};
    int code = MPI_SUCCESS;
    if (result == 0) {
        code = make_of_members(&described, &team.comm);
        if (code == MPI_SUCCESS && is_graph)
            code = add_graph(&described, &team.comm);
        if (code == MPI_SUCCESS)
            code = MPI_Comm_set_errhandler(team.comm, MPI_ERRORS_RETURN);
        if (code != MPI_SUCCESS)
            result =
                failure_set(failure, "mpi", "", "the MPI library cannot make a communicator of %u ranks%s",
                            (unsigned)described.head.members, is_graph ? " with a graph" : "");
    }
    if (result != 0) {
        free(described.numbers);
        return -1;
    }
    team.rank = described.head.rank;
    team.ranks = (int)described.head.members;
    team.sources = (int)described.head.sources;
    team.targets = (int)described.head.targets;
    free(teams->items[number].members);
    teams->items[number] = team;
    return 0;
}

static int make_usual(struct teams *teams, int rank, int ranks, struct failure *failure) {
    const MPI_Comm comms[USUAL] = {MPI_COMM_WORLD, MPI_COMM_SELF};
    const int sizes[USUAL] = {ranks, 1};
    if (grow(teams, USUAL, failure) != 0)
        return -1;
    for (int number = 0; number < USUAL; number++) {
        int *members = malloc((size_t)sizes[number] * sizeof *members);
        if (members == NULL)
            return no_memory(failure);
        for (int i = 0; i < sizes[number]; i++)
            members[i] = number == TRACE_WORLD ? i : rank;
        teams->items[number] = (struct team){.comm = comms[number],
                                             .rank = number == TRACE_WORLD ? rank : 0,
                                             .ranks = sizes[number],
                                             .members = members};
    }
    return 0;
}

/* Communicators that neighbours talk on. */
static int find_graphs(const struct stream *stream, bool *is_graph, struct failure *failure) {
    struct entry entry;
    uint64_t place = 0;
    enum stream_state state;
    while ((state = stream_next(stream, &place, &entry)) == STREAM_ENTRY)
        if (entry.record.kind == TRACE_NEIGHBOR_ALLTOALLV)
            is_graph[entry.record.comm] = true;
    return state == STREAM_END ? 0 : failure_set(failure, "trace", "", "the trace is damaged");
}

int teams_make(struct teams *teams, const struct stream *stream, struct failure *failure) {
    int rank = 0;
    int ranks = 1;
    *teams = (struct teams){0};
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    bool *is_graph = calloc(UINT16_MAX + 1, sizeof *is_graph);
    if (is_graph == NULL)
        return no_memory(failure);
    int result = make_usual(teams, rank, ranks, failure);
    if (result == 0)
        result = find_graphs(stream, is_graph, failure);
    struct entry entry;
    uint64_t place = 0;
    while (result == 0 && stream_next(stream, &place, &entry) == STREAM_ENTRY)
        if (entry.record.kind == TRACE_COMMUNICATOR)
            result = make(teams, &entry, is_graph[entry.record.comm], ranks, failure);
    free(is_graph);
    return result;
}

void teams_free(struct teams *teams) {
    for (size_t i = 0; i < teams->count; i++) {
        struct team *team = &teams->items[i];
        if (i >= USUAL && team->comm != MPI_COMM_NULL)
            MPI_Comm_free(&team->comm);
        free(team->members);
    }
    free(teams->items);
    *teams = (struct teams){0};
}
