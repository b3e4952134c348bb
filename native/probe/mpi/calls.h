/* Single calls, timed on the rank that makes them: what they take is taken from the program, the rest of a
 * message's time is the network's (Culler and others, 1993; Hoefler and others, 2007). */
#ifndef WULF_MPI_CALLS_H
#define WULF_MPI_CALLS_H

#include <sched.h>

#include "probe/mpi/loops.h"

enum { TOKEN_BYTES = 1, CALL_VISIT_SCALE = 5 };

/* Of an iteration only the call is timed; what comes before and after it may be NULL. */
struct timed_call {
    mpi_iteration before, call, after;
};

static inline int call_ask(struct mpi_side *side) {
    const unsigned char token = 1;
    return MPI_Send(&token, TOKEN_BYTES, MPI_BYTE, side->link.peer, TAG_DATA, side->link.comm);
}

static inline int call_hear(struct mpi_side *side) {
    unsigned char token = 0;
    return MPI_Recv(&token, TOKEN_BYTES, MPI_BYTE, side->link.peer, TAG_DATA, side->link.comm,
                    MPI_STATUS_IGNORE);
}

static inline int call_send(struct mpi_side *side) {
    return MPI_Send(side->out, side->size, MPI_BYTE, side->link.peer, TAG_DATA, side->link.comm);
}

static inline int call_receive(struct mpi_side *side) {
    return MPI_Recv(side->in, side->size, MPI_BYTE, side->link.peer, TAG_DATA, side->link.comm,
                    MPI_STATUS_IGNORE);
}

static inline int call_receive_and_answer(struct mpi_side *side) {
    const int code = call_receive(side);
    return code == MPI_SUCCESS ? call_ask(side) : code;
}

/* Without a call of the library, so that it makes no progress either; a processor that ranks share is given
 * away meanwhile. */
static inline void call_nothing_for(uint64_t wait_ns) {
    const uint64_t until_ns = clock_now_ns() + wait_ns;
    while (clock_now_ns() < until_ns)
        sched_yield();
}

/* One iteration more than asked for comes first, as in every visit. */
__attribute__((always_inline)) static inline int
call_initiate(struct visit *visit, struct mpi_side *side, struct timed_call timed, struct failure *failure) {
    const uint64_t iterations = visit->iterations;
    const uint64_t begun_ns = clock_now_ns();
    int code = MPI_SUCCESS;
    for (uint64_t i = 0; i <= iterations && code == MPI_SUCCESS; i++) {
        if (timed.before != NULL)
            code = timed.before(side);
        if (code != MPI_SUCCESS)
            break;
        const uint64_t before_ns = clock_now_ns();
        code = timed.call(side);
        const uint64_t took_ns = clock_now_ns() - before_ns;
        if (code == MPI_SUCCESS && timed.after != NULL)
            code = timed.after(side);
        watchdog_beat();
        if (i == 0)
            continue;
        visit->times_ns[i - 1] = took_ns;
        visit->total_ns += took_ns;
    }
    visit->timed = iterations;
    visit->lasted_ns = clock_now_ns() - begun_ns;
    return code == MPI_SUCCESS ? 0 : mpi_failed(&side->link, code, failure);
}

/* The other side of what sends and then hears. */
static inline int call_respond_to_send(struct visit *visit, struct failure *failure) {
    struct mpi_side side = mpi_side(visit, NULL);
    if (mpi_respond(visit, &side, call_receive_and_answer, failure) != 0)
        return -1;
    return mpi_check(visit, side.in, failure);
}

#endif
