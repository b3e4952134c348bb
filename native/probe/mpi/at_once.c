#include "probe/mpi/at_once.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "core/watchdog.h"

enum { TAG_LINE = 3, TAG_FAILURE = 4 };
/* So long rank 0 has to print what went wrong elsewhere before the launch is ended. */
static const struct timespec PATIENCE = {.tv_sec = 2};
/* While a rank waits for the other pairs, its own partner, and the reader of rank 0, hear so often of it. */
static const uint64_t KEEP_ALIVE_NS = 1000000000;

static int failed(const struct at_once *at_once, int code, struct failure *failure) {
    const struct mpi_link all = {.comm = at_once->leaders, .peer_name = "the other pairs"};
    return code == MPI_SUCCESS ? 0 : mpi_failed(&all, code, failure);
}

/* Whether another pair has said that it failed, and what; only rank 0 is told. */
static bool others_failed(const struct at_once *at_once, struct failure *failure) {
    int said = 0;
    MPI_Status status;
    if (at_once->company.ranks[0] != 0 ||
        MPI_Iprobe(MPI_ANY_SOURCE, TAG_FAILURE, at_once->leaders, &said, &status) != MPI_SUCCESS || !said)
        return false;
    return MPI_Recv(failure, sizeof *failure, MPI_BYTE, status.MPI_SOURCE, TAG_FAILURE, at_once->leaders,
                    MPI_STATUS_IGNORE) == MPI_SUCCESS;
}

static int keep_alive(const struct at_once *at_once, uint64_t *last_ns, struct failure *failure) {
    const uint64_t now = clock_now_ns();
    if (now - *last_ns < KEEP_ALIVE_NS)
        return 0;
    *last_ns = now;
    if (at_once->company.ranks[0] == 0 && report_waiting() != 0)
        return failure_set(failure, "system", "", "cannot write to standard output");
    unsigned char bytes[COMMAND_BYTES];
    const struct command wait = {.kind = COMMAND_WAIT};
    command_encode(&wait, bytes);
    return at_once->channel.send(at_once->channel.link, bytes, sizeof bytes, failure);
}

/* A barrier that does not hold a CPU which ranks share, and in which a failure of another pair is heard. */
static int together(void *context, struct failure *failure) {
    const struct at_once *at_once = context;
    MPI_Request request;
    int arrived = 0;
    uint64_t last_ns = clock_now_ns();
    if (failed(at_once, MPI_Ibarrier(at_once->leaders, &request), failure) != 0)
        return -1;
    while (!arrived) {
        watchdog_beat();
        if (failed(at_once, MPI_Test(&request, &arrived, MPI_STATUS_IGNORE), failure) != 0)
            return -1;
        if (!arrived && (others_failed(at_once, failure) || keep_alive(at_once, &last_ns, failure) != 0))
            return -1;
        if (!arrived)
            sched_yield();
    }
    return 0;
}

static int print_from(const struct at_once *at_once, int leader, struct failure *failure) {
    MPI_Status status;
    int length = 0;
    if (failed(at_once, MPI_Probe(leader, TAG_LINE, at_once->leaders, &status), failure) != 0 ||
        failed(at_once, MPI_Get_count(&status, MPI_BYTE, &length), failure) != 0)
        return -1;
    char *line = malloc((size_t)length);
    if (line == NULL)
        return failure_set(failure, "system", "", "no memory for a line of %d bytes", length);
    int result = failed(
        at_once, MPI_Recv(line, length, MPI_BYTE, leader, TAG_LINE, at_once->leaders, MPI_STATUS_IGNORE),
        failure);
    if (result == 0 && line_copy(line, (size_t)length) != 0)
        result = failure_set(failure, "system", "", "cannot write to standard output");
    free(line);
    watchdog_beat();
    return result;
}

/* On rank 0, after its own lines: every other pair has as many. */
static int collect(void *context, struct failure *failure) {
    const struct at_once *at_once = context;
    for (int leader = 1; leader < at_once->count; leader++) {
        for (size_t i = 0; i < at_once->lines; i++)
            if (print_from(at_once, leader, failure) != 0)
                return -1;
    }
    return 0;
}

static int send_line(const struct record *record, const struct company *company, struct failure *failure) {
    const struct at_once *at_once = company->context;
    const int code = MPI_Send(record->text, (int)record->length, MPI_BYTE, 0, TAG_LINE, at_once->leaders);
    watchdog_beat();
    return failed(at_once, code, failure);
}

int at_once_begin(struct at_once *at_once, const struct arguments *arguments, int rank,
                  const struct node *nodes, struct failure *failure) {
    const int first = rank - rank % 2;
    const int other = first + (rank + 1) % 2;
    MPI_Comm pair;
    *at_once = (struct at_once){.pair = {.comm = MPI_COMM_WORLD, .peer_name = nodes[other].host},
                                .lines = (arguments->size_count + (arguments->reference_us > 0)) *
                                             (arguments->arms == NULL ? 1 : 2) +
                                         1 /* how they were scheduled */};
    int code = MPI_Comm_split(MPI_COMM_WORLD, first, rank, &pair);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &at_once->leaders);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_size(at_once->leaders, &at_once->count);
    if (code != MPI_SUCCESS)
        return mpi_failed(&at_once->pair, code, failure);
    at_once->pair.comm = pair;
    at_once->pair.peer = at_once->pair.last_peer = (rank + 1) % 2;
    at_once->channel = mpi_channel(&at_once->pair);
    at_once->company = (struct company){
        .ranks = {first, first + 1}, .context = at_once, .together = together, .collect = collect};
    return 0;
}

int at_once_measure(struct at_once *at_once, const struct arguments *arguments, struct failure *failure) {
    const int result = launch_measure(arguments, &at_once->channel, &at_once->company, send_line, failure);
    if (result != 0) {
        MPI_Send(failure, sizeof *failure, MPI_BYTE, 0, TAG_FAILURE, at_once->leaders);
        nanosleep(&PATIENCE, NULL);
    }
    return result;
}
