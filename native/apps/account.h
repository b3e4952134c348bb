/* What an application says of its communication: time, messages, bytes; of all ranks together. */
#ifndef WULF_APPS_ACCOUNT_H
#define WULF_APPS_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/options.h"

enum { EXIT_RIGHT = 0, EXIT_NOT_RIGHT = 1, EXIT_USAGE = 2 };

/* Of one rank; the time between account_enter and account_leave is communication, waiting included. */
struct account {
    uint64_t entered_ns, communication_ns;
    uint64_t messages, bytes; /* sent */
    uint64_t run_ns;
};

struct total {
    double run_s;           /* of the rank that took longest */
    double communication_s; /* mean of the ranks */
    uint64_t messages, bytes;
};

void account_enter(struct account *account);
void account_leave(struct account *account);
/* A message that this rank has sent. */
void account_sent(struct account *account, uint64_t bytes);

/* Of all ranks of MPI_COMM_WORLD, at rank 0; every rank calls it. An error code of MPI. */
int account_total(const struct account *account, struct total *total);
/* Lines of name and value: run time, communication, messages, bytes. */
void account_print(const struct total *total);

/* Read the command line, then start MPI; rank 0 says what is wrong. Whether to go on, with MPI started;
 * `code` is how to end if not. */
bool application_begin(const struct option *options, size_t count, int *argc, char ***argv, const char *what,
                       int *code);

#endif
