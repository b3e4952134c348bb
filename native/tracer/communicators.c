#include "tracer/communicators.h"

#include <stdlib.h>

#include "tracer/stream.h"
#include "tracer/tracer.h"

/* Numbers are never used twice in a trace. */
enum { NUMBERS_MOST = UINT16_MAX };

struct communicator last_communicator = {.comm = MPI_COMM_NULL};

static struct communicator *all;
static uint32_t known, room;
static uint16_t last = TRACE_SELF;

static int32_t *put_members(int32_t *to, MPI_Group group, int count) {
    int *own = malloc(2 * (size_t)count * sizeof *own);
    MPI_Group world;
    if (own == NULL)
        return NULL;
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    for (int rank = 0; rank < count; rank++)
        own[rank] = rank;
    PMPI_Group_translate_ranks(group, count, own, world, own + count);
    for (int rank = 0; rank < count; rank++)
        *to++ = own[count + rank] == MPI_UNDEFINED ? TRACE_NOBODY : own[count + rank];
    PMPI_Group_free(&world);
    free(own);
    return to;
}

/* Neighbours in a mesh, in the order in which its collectives take them. */
static void mesh(MPI_Comm comm, int dimensions, int *to) {
    for (int dimension = 0; dimension < dimensions; dimension++)
        PMPI_Cart_shift(comm, dimension, 1, &to[2 * dimension], &to[2 * dimension + 1]);
}

/* Return the neighbours, sources first, to be freed; NULL without any. */
static int *neighbours(MPI_Comm comm, int rank, int *sources, int *targets) {
    int kind = MPI_UNDEFINED;
    int count = 0;
    int is_weighted = 0;
    *sources = *targets = 0;
    PMPI_Topo_test(comm, &kind);
    if (kind == MPI_CART) {
        PMPI_Cartdim_get(comm, &count);
        *sources = *targets = 2 * count;
    } else if (kind == MPI_GRAPH) {
        PMPI_Graph_neighbors_count(comm, rank, sources);
        *targets = *sources;
    } else if (kind == MPI_DIST_GRAPH) {
        PMPI_Dist_graph_neighbors_count(comm, sources, targets, &is_weighted);
    }
    const size_t wanted = (size_t)*sources + (size_t)*targets;
    int *found = wanted > 0 ? malloc(2 * wanted * sizeof *found) : NULL;
    if (found == NULL) {
        *sources = *targets = 0;
        return NULL;
    }
    if (kind == MPI_DIST_GRAPH) {
        int *weights = found + wanted;
        PMPI_Dist_graph_neighbors(comm, *sources, found, is_weighted ? weights : MPI_UNWEIGHTED, *targets,
                                  found + *sources, is_weighted ? weights + *sources : MPI_UNWEIGHTED);
        return found;
    }
    if (kind == MPI_CART)
        mesh(comm, count, found);
    else
        PMPI_Graph_neighbors(comm, rank, *sources, found);
    for (int one = 0; one < *sources; one++)
        found[*sources + one] = found[one];
    return found;
}

/* Write what a communicator is; return how many neighbours this rank sends to. */
static int describe(MPI_Comm comm, uint16_t number) {
    int is_inter = 0;
    int rank = 0;
    int members = 0;
    int others = 0;
    int sources = 0;
    int targets = 0;
    MPI_Group group;
    PMPI_Comm_test_inter(comm, &is_inter);
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &members);
    if (is_inter) {
        PMPI_Comm_remote_size(comm, &others);
        tracer_mark(TRACE_INTER);
    }
    int *beside = is_inter ? NULL : neighbours(comm, rank, &sources, &targets);
    const size_t numbers = (size_t)(members + others + sources + targets);
    struct trace_communicator *payload = malloc(sizeof *payload + numbers * sizeof(int32_t));
    if (payload == NULL) {
        free(beside);
        tracer_mark(TRACE_PASSED);
        return targets;
    }
    *payload = (struct trace_communicator){.members = (uint32_t)(members + others),
                                           .sources = (uint32_t)sources,
                                           .targets = (uint32_t)targets,
                                           .inter = (uint32_t)is_inter,
                                           .rank = rank};
    int32_t *to = (int32_t *)(payload + 1);
    PMPI_Comm_group(comm, &group);
    to = put_members(to, group, members);
    PMPI_Group_free(&group);
    if (is_inter && to != NULL) {
        PMPI_Comm_remote_group(comm, &group);
        to = put_members(to, group, others);
        PMPI_Group_free(&group);
    }
    if (to == NULL)
        tracer_mark(TRACE_PASSED);
    else {
        for (int one = 0; one < sources + targets; one++)
            *to++ = beside[one] < 0 ? TRACE_NOBODY : beside[one];
        const struct trace_record record = {
            .kind = TRACE_COMMUNICATOR, .flags = TRACE_PAYLOAD, .comm = number, .peer = TRACE_NOBODY};
        stream_append(&record, payload, sizeof *payload + numbers * sizeof(int32_t));
    }
    free(payload);
    free(beside);
    return targets;
}

/* A number for one that was not seen before; it is described as another is. */
static struct communicator take_in(MPI_Comm comm, MPI_Comm like) {
    const struct communicator none = {.comm = MPI_COMM_NULL, .number = TRACE_SELF};
    if (last == NUMBERS_MOST) {
        tracer_mark(TRACE_PASSED);
        return none;
    }
    if (known == room) {
        struct communicator *more = realloc(all, (room > 0 ? 2 * room : 16) * sizeof *more);
        if (more == NULL) {
            tracer_mark(TRACE_PASSED);
            return none;
        }
        all = more;
        room = room > 0 ? 2 * room : 16;
    }
    all[known] = (struct communicator){.comm = comm, .number = ++last};
    all[known].targets = describe(like, last);
    return all[known++];
}

uint16_t communicator_find(MPI_Comm comm) {
    /* The one that was made last is used most. */
    uint32_t place = known;
    while (place > 0 && all[place - 1].comm != comm)
        place--;
    last_communicator = place > 0 ? all[place - 1] : take_in(comm, comm);
    return last_communicator.number;
}

void communicator_will_be(MPI_Comm comm, MPI_Comm like) { (void)take_in(comm, like); }

int communicator_targets(MPI_Comm comm) {
    (void)communicator_number(comm);
    return last_communicator.comm == comm ? last_communicator.targets : 0;
}

void communicator_forget(MPI_Comm comm) {
    last_communicator.comm = MPI_COMM_NULL;
    for (uint32_t place = 0; place < known; place++)
        if (all[place].comm == comm) {
            all[place] = all[--known];
            return;
        }
}
