/* A launch on the measuring side, from the first line to the last. */
#ifndef WULF_LAUNCH_H
#define WULF_LAUNCH_H

#include "probe/arguments.h"
#include "probe/report.h"

/* Print hello, measure, print the cells and end. `channel` is NULL when nobody answers. 0, or -1 with
 * `failure`, whose line has not been printed. */
int launch_run(const struct arguments *arguments, struct introduction *introduction,
               const struct channel *channel, struct failure *failure);

/* What both programs do first: 0 to go on, otherwise *exit_code says how to end. */
int launch_begin(struct arguments *arguments, enum program program, int argc, char *const argv[],
                 int *exit_code);

#endif
