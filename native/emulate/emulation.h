/* One rank that performs a pattern: all that it has. */
#ifndef WULF_EMULATE_EMULATION_H
#define WULF_EMULATE_EMULATION_H

#include <mpi.h>
#include <stdbool.h>

#include "core/failure.h"
#include "emulate/compute.h"
#include "emulate/learned.h"
#include "emulate/shelf.h"
#include "emulate/stream.h"
#include "emulate/survey.h"
#include "emulate/teams.h"

struct mail; /* where messages do not go by messages of MPI */

/* A request that was begun, or made to be begun again and again. */
struct request {
    MPI_Request handle;
    bool is_receive, stays;
    bool is_together; /* between neighbours */
    bool is_carried;  /* by mail: a receive is made when it is waited for */
    int tag;
    unsigned char *in; /* where it receives to */
    const struct team *team;
    int source;
    uint64_t bytes;
    size_t counts; /* of neighbours, the first of theirs */
};

/* Memory that others write into. */
struct window {
    MPI_Win handle;
    unsigned char *memory;
    uint64_t bytes;
};

/* What a rank notes of one program in one pass. */
struct notes {
    uint64_t iterations; /* of this rank; 0: it has no part in it */
    uint64_t made;
    int64_t *ended_ns;             /* when each was over */
    uint64_t time_ns;              /* within the program's iterations … */
    uint64_t compute_ns, asked_ns; /* … and of it computing, as it took and as it was asked for */
};

struct emulation {
    int rank, ranks; /* of the world */
    struct stream stream;
    struct teams teams;
    struct learned learned;
    struct survey survey;
    struct compute compute;
    struct failure *failure;

    unsigned char *out, *in, *stay;            /* messages of two ranks */
    unsigned char *together_out, *together_in; /* of collectives */
    unsigned char *put_out;
    struct shelf passing, staying;
    struct request *requests;
    uint32_t *numbers; /* of the requests of one call */
    MPI_Request *handles;
    MPI_Status *statuses;
    struct window *windows;
    int *out_counts, *out_places, *in_places; /* of neighbours */
    struct notes *notes;                      /* by number of the program */

    bool checks;    /* what arrives, in this pass */
    uint64_t wrong; /* messages that were not what was sent */
    struct mail *mail;
    uint64_t place; /* slot that is next */
    size_t next_counts, next_farm;
    int program; /* whose iteration it is; 0: none */
    uint64_t begun_ns;
};

/* A call of the library failed, or something of our own, which is then in `failure`. */
typedef int (*perform_function)(struct emulation *emulation, const struct entry *entry);

/* Read the stream, make communicators and room for messages. All ranks call it. */
int emulation_open(struct emulation *emulation, const char *path, struct failure *failure);
void emulation_close(struct emulation *emulation);

/* Perform records up to a slot: what comes before the first iteration, all iterations, what comes after. */
int emulation_perform(struct emulation *emulation, uint64_t until);
/* Make ready for a pass: its notes are empty, its first record is that of the first iteration. */
void emulation_rewind(struct emulation *emulation);

/* Compute, and note how long it took. */
void emulation_compute(struct emulation *emulation, uint64_t lasts_ns);
/* Say what of our own went wrong; returns what is no success of MPI. */
__attribute__((format(printf, 2, 3))) int emulation_failed(struct emulation *emulation, const char *format,
                                                           ...);

/* Performing, one file for each of these. */
int perform_send(struct emulation *emulation, const struct entry *entry);
int perform_receive(struct emulation *emulation, const struct entry *entry);
int perform_exchange(struct emulation *emulation, const struct entry *entry);
int perform_begin(struct emulation *emulation, const struct entry *entry);
int perform_wait(struct emulation *emulation, const struct entry *entry);
int perform_make(struct emulation *emulation, const struct entry *entry);
int perform_start(struct emulation *emulation, const struct entry *entry);
int perform_free(struct emulation *emulation, const struct entry *entry);
int perform_together(struct emulation *emulation, const struct entry *entry);
int perform_neighbours(struct emulation *emulation, const struct entry *entry);
int perform_window(struct emulation *emulation, const struct entry *entry);
int perform_fence(struct emulation *emulation, const struct entry *entry);
int perform_put(struct emulation *emulation, const struct entry *entry);
int perform_window_free(struct emulation *emulation, const struct entry *entry);
int perform_serve(struct emulation *emulation, const struct entry *entry);
int perform_farm(struct emulation *emulation, const struct entry *entry);

/* A message that came from `source` of a team is looked at, in a pass that checks; `count` of it came. */
void check_bytes(struct emulation *emulation, const unsigned char *in, uint64_t bytes,
                 const struct team *team, int source, uint64_t count);
/* The same of one whose status says that. */
void check_message(struct emulation *emulation, const unsigned char *in, uint64_t bytes,
                   const struct team *team, int source, const MPI_Status *status);
/* What neighbours have sent together. */
void check_neighbours(struct emulation *emulation, const struct team *team, size_t counts);
/* What is put into windows. */
void windows_fill(struct emulation *emulation);
/* In a pass that checks: what was there before can not be taken for what came. */
void spoil(const struct emulation *emulation, unsigned char *in, uint64_t bytes);

#endif
