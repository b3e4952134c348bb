/* A launch on the measuring side, from the first line to the last. */
#ifndef WULF_LAUNCH_H
#define WULF_LAUNCH_H

#include "probe/arguments.h"
#include "probe/report.h"

/* Other pairs of ranks that measure at the same time. Functions return 0, or -1 with `failure`. */
struct company {
    int ranks[2]; /* of this pair */
    void *context;
    /* Wait until all pairs are about to make the next visit. */
    int (*together)(void *context, struct failure *failure);
    /* Print the lines of the other pairs. */
    int (*collect)(void *context, struct failure *failure);
};

/* Print hello, measure, print the cells and end. `channel` is NULL when nobody answers, `company` when
 * nobody else measures. 0, or -1 with `failure`, whose line has not been printed. */
int launch_run(const struct arguments *arguments, struct introduction *introduction,
               const struct channel *channel, const struct company *company, struct failure *failure);

/* Measure without a word; `use` is called with each line of the results. 0, or -1 with `failure`. */
int launch_measure(const struct arguments *arguments, const struct channel *channel,
                   const struct company *company,
                   int (*use)(const struct record *record, const struct company *company,
                              struct failure *failure),
                   struct failure *failure);

/* What both programs do first: 0 to go on, otherwise *exit_code says how to end. */
int launch_begin(struct arguments *arguments, enum program program, int argc, char *const argv[],
                 int *exit_code);

#endif
