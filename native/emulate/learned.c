#include "emulate/learned.h"

#include <limits.h>
#include <stdlib.h>

#include "core/watchdog.h"

enum { TASK_NUMBERS = 3 };

static int no_memory(struct failure *failure) {
    return failure_set(failure, "system", "", "no memory for what other ranks send");
}

static int said(int code, struct failure *failure) {
    return code == MPI_SUCCESS
               ? 0
               : failure_set(failure, "mpi", "", "ranks could not tell each other what they send");
}

/* What each target gets goes to it; what each source sends comes. */
static int ask_neighbours(struct learned *learned, const struct entry *entry, const struct team *team,
                          struct failure *failure) {
    const size_t sources = (size_t)team->sources;
    const size_t targets = (size_t)team->targets;
    if (learned->count_of + sources > learned->count_room) {
        const size_t room = 2 * (learned->count_of + sources);
        int *counts = realloc(learned->counts, room * sizeof *counts);
        if (counts == NULL)
            return no_memory(failure);
        learned->counts = counts;
        learned->count_room = room;
    }
    int *own = calloc(targets + 1, sizeof *own);
    int none = 0;
    if (own == NULL)
        return no_memory(failure);
    for (size_t i = 0; i < targets; i++) {
        const uint64_t bytes = entry_number(entry, i);
        own[i] = bytes > INT_MAX ? INT_MAX : (int)bytes; /* the survey refuses it */
    }
    const int code = MPI_Neighbor_alltoall(
        own, 1, MPI_INT, sources > 0 ? learned->counts + learned->count_of : &none, 1, MPI_INT, team->comm);
    free(own);
    learned->count_of += sources;
    return said(code, failure);
}

static int hear_of_farm(struct learned *learned, const struct entry *entry, const struct team *team,
                        struct failure *failure) {
    if (learned->farm_of == learned->farm_room) {
        const size_t room = 2 * learned->farm_room + 8;
        struct farm *farms = realloc(learned->farms, room * sizeof *farms);
        if (farms == NULL)
            return no_memory(failure);
        learned->farms = farms;
        learned->farm_room = room;
    }
    const int master = entry->record.peer;
    uint64_t tasks = entry->payload_bytes / sizeof(struct task);
    int code = MPI_Bcast(&tasks, 1, MPI_UINT64_T, master, team->comm);
    if (code != MPI_SUCCESS)
        return said(code, failure);
    if (tasks > INT_MAX / TASK_NUMBERS)
        return failure_set(failure, "trace", "", "a task farm has too many tasks");
    struct task *items = calloc(tasks + 1, sizeof *items);
    if (items == NULL)
        return no_memory(failure);
    for (uint64_t i = 0; team->rank == master && i < tasks; i++)
        items[i] =
            (struct task){entry_number(entry, TASK_NUMBERS * i), entry_number(entry, TASK_NUMBERS * i + 1),
                          entry_number(entry, TASK_NUMBERS * i + 2)};
    learned->farms[learned->farm_of++] = (struct farm){team, tasks, items};
    return said(MPI_Bcast(items, (int)(TASK_NUMBERS * tasks), MPI_UINT64_T, master, team->comm), failure);
}

int learned_make(struct learned *learned, const struct stream *stream, const struct teams *teams,
                 struct failure *failure) {
    struct entry entry;
    uint64_t place = 0;
    int result = 0;
    *learned = (struct learned){0};
    while (result == 0 && stream_next(stream, &place, &entry) == STREAM_ENTRY) {
        const bool is_farm = entry_is_mark(&entry, TRACE_MARK_FARM);
        if (!is_farm && entry.record.kind != TRACE_NEIGHBOR_ALLTOALLV)
            continue;
        const struct team *team = team_at(teams, entry.record.comm);
        if (team == NULL || (is_farm && (entry.record.peer < 0 || entry.record.peer >= team->ranks)))
            return failure_set(failure, "trace", "",
                               "the trace names a communicator or a rank that is not there");
        result = is_farm ? hear_of_farm(learned, &entry, team, failure)
                         : ask_neighbours(learned, &entry, team, failure);
        watchdog_beat();
    }
    return result;
}

void learned_free(struct learned *learned) {
    for (size_t i = 0; i < learned->farm_of; i++)
        free(learned->farms[i].items);
    free(learned->farms);
    free(learned->counts);
    *learned = (struct learned){0};
}
