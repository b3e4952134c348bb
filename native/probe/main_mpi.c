/* wulf-probe-mpi: rank 0 measures and prints, the others answer. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/mpi/end.h"
#include "core/mpi/ranks.h"
#include "core/watchdog.h"
#include "probe/buffers.h"
#include "probe/launch.h"
#include "probe/mpi/at_once.h"
#include "probe/mpi/filesystem.h"
#include "probe/mpi/link.h"
#include "probe/mpi/parameters.h"
#include "probe/mpi/threads.h"

enum { PAIR = 2, RESPONDER_PATIENCE_S = 2, LIMITS_MOST = 32 };

/* The responder says on standard error what the initiator says on standard output: only one of them may
 * write the protocol. It waits a little longer, because the initiator's word is the one that counts. */
static int guard(const struct arguments *arguments, int rank, const char *peer, struct failure *failure) {
    const unsigned timeout_s = (unsigned)arguments->peer_timeout_s + (rank == 0 ? 0 : RESPONDER_PATIENCE_S);
    if (watchdog_start(rank == 0 ? STDOUT_FILENO : STDERR_FILENO, peer, timeout_s) == 0)
        return 0;
    return failure_set(failure, "system", "", "cannot set up the watchdog: %s", strerror(errno));
}

static int check_ranks(const struct arguments *arguments, int ranks, struct failure *failure) {
    const struct operation *operation = operation_find(arguments->op);
    if (arguments->at_once) {
        if (!operation->group && operation->link == LINK_MPI && ranks % PAIR == 0)
            return 0;
        return failure_set(failure, "ranks", "",
                           "--at-once needs an operation of two ranks, and pairs of them");
    }
    if (ranks == PAIR || (ranks == 1 && operation->link == LINK_NONE) || (ranks > PAIR && operation->group))
        return 0;
    return failure_set(failure, "ranks", "", "%s needs %s2 ranks, there %s %d: start it with -np 2",
                       operation->name, operation->group ? "at least " : "", ranks == 1 ? "is" : "are",
                       ranks);
}

static int lead(const struct arguments *arguments, struct mpi_link *link, const struct company *company,
                const struct node *nodes, int ranks, struct failure *failure) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING + 1];
    struct limit limits[LIMITS_MOST];
    struct introduction introduction = {
        .program = "wulf-probe-mpi",
        .mpi = library_version(version),
        .nodes = nodes,
        .node_count = (size_t)ranks,
        .eager_limits = limits,
        .eager_limit_count = limits_read(limits, LIMITS_MOST),
        .yields = arguments->yield || library_yields(),
        .thread_level = threads_name(),
        .filesystem = arguments->directory == NULL ? NULL : filesystem_name(arguments->directory),
    };
    const struct channel channel = mpi_channel(link);
    return launch_run(arguments, &introduction, ranks == 1 ? NULL : &channel, company, failure);
}

static int respond(const struct arguments *arguments, struct mpi_link *link, int ranks,
                   struct failure *failure) {
    const struct channel channel = mpi_channel(link);
    const struct responder responder = {.operation = operation_find(arguments->op),
                                        .parameter = arguments->parameter,
                                        .ranks = (size_t)ranks,
                                        .max_size = arguments->sizes[arguments->size_count - 1],
                                        .alternate = arguments->alternate};
    return sweep_respond(&responder, &channel, failure);
}

/* So many calls of a collective, and nothing else. */
static int call_only(const struct arguments *arguments, struct mpi_link *link, int rank, int ranks,
                     struct failure *failure) {
    const struct operation *operation = operation_find(arguments->op);
    const size_t size = arguments->sizes[0];
    const uint64_t begin_ns = clock_now_ns();
    struct buffers buffers;
    if (!operation->tells_exits)
        return failure_set(failure, "ranks", "", "--calls is about collectives, and %s is none",
                           operation->name);
    if (buffers_new(&buffers, operation->room == ROOM_EVERY_RANK ? size * (size_t)ranks : size) != 0)
        return failure_set(failure, "system", "", "no memory for messages of %zu B", size);
    struct visit visit = {.link = link,
                          .buffer = buffers.first,
                          .spare = buffers.second,
                          .size = size,
                          .iterations = arguments->calls,
                          .seed = arguments->seed,
                          .bare = true};
    int result = operation->initiate(&visit, failure);
    buffers_free(&buffers);
    if (result == 0 && visit.corrupt)
        result = failure_set(failure, "mpi", "", "%s gave wrong data", operation->name);
    if (result != 0 || rank > 0)
        return result;
    if (line_end((double)(clock_now_ns() - begin_ns) / 1e9) == 0)
        return 0;
    return failure_set(failure, "system", "", "cannot write: %s", strerror(errno));
}

static int take_part(const struct arguments *arguments, int rank, int ranks, struct node *nodes,
                     struct failure *failure) {
    struct at_once at_once;
    struct mpi_link link = {.comm = MPI_COMM_WORLD,
                            .peer = rank == 0 ? 1 : 0,
                            .last_peer = rank == 0 ? ranks - 1 : 0,
                            .peer_name = ranks > PAIR ? "the other ranks" : "the other rank",
                            .directory = arguments->directory};
    if (guard(arguments, rank, link.peer_name, failure) != 0)
        return -1;
    if (arguments->calls > 0) /* before ranks tell where they are: that is a collective, too */
        return call_only(arguments, &link, rank, ranks, failure);
    const struct operation *operation = operation_find(arguments->op);
    int code = operation->at_first != NULL && ranks == PAIR ? operation->at_first(&link) : MPI_SUCCESS;
    if (code == MPI_SUCCESS)
        code = nodes_gather(MPI_COMM_WORLD, nodes);
    if (code != MPI_SUCCESS)
        return mpi_failed(&link, code, failure);
    if (arguments->at_once) {
        if (at_once_begin(&at_once, arguments, rank, nodes, failure) != 0)
            return -1;
        link = at_once.pair;
    } else if (ranks > 1 && link.peer == link.last_peer)
        link.peer_name = nodes[link.peer].host;
    if (guard(arguments, rank, link.peer_name, failure) != 0)
        return -1;
    watchdog_leave_on_terminate();
    if (arguments->at_once ? rank % PAIR != 0 : rank > 0)
        return respond(arguments, &link, arguments->at_once ? PAIR : ranks, failure);
    if (ranks > 1) {
        /* A launcher that sees one rank die ends the others like this. Of several that measure all must hear
         * it: one that waits for another pair has nothing else to tell it that this pair is gone. */
        const char *others = ranks > PAIR ? "one of the other ranks" : link.peer_name;
        char message[NODE_HOST_BYTES + 128];
        snprintf(message, sizeof message,
                 "the MPI launcher ended the launch: the process on %s died, or the launch was cancelled",
                 others);
        watchdog_on_terminate(rank == 0 ? STDOUT_FILENO : STDERR_FILENO, others, message);
    }
    if (rank > 0)
        return at_once_measure(&at_once, arguments, failure);
    return lead(arguments, &link, arguments->at_once ? &at_once.company : NULL, nodes, ranks, failure);
}

int main(int argc, char **argv) {
    static struct arguments arguments;
    int exit_code = 0;
    if (launch_begin(&arguments, PROGRAM_MPI, argc, argv, &exit_code) != 0)
        return exit_code;
    if (arguments.thread_level != NULL && !threads_known(arguments.thread_level)) {
        fputs("wulf-probe-mpi: --thread-level: give single, funneled, serialized or multiple\n", stderr);
        return USAGE_EXIT;
    }
    struct failure failure = {0};
    int rank = 0;
    int ranks = 0;
    threads_begin(&argc, &argv, arguments.thread_level);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (arguments.parameters) {
        const int printed = rank == 0 ? parameters_print(STDOUT_FILENO) : 0;
        MPI_Finalize();
        return printed == 0 ? 0 : FAILURE_EXIT;
    }
    if (check_ranks(&arguments, ranks, &failure) != 0) {
        if (rank == 0)
            line_failure(&failure, STDOUT_FILENO);
        MPI_Finalize(); /* all ranks come here; to abort could cut the line off */
        return FAILURE_EXIT;
    }
    struct node *nodes = calloc((size_t)ranks, sizeof *nodes);
    if (nodes == NULL)
        failure_set(&failure, "system", "", "no memory for %d ranks", ranks);
    if (nodes == NULL || take_part(&arguments, rank, ranks, nodes, &failure) != 0)
        job_abort(&failure, rank);
    free(nodes);
    MPI_Finalize();
    return 0;
}
