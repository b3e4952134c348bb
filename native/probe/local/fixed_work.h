/* Fixed work, again and again: what takes longer than the shortest was taken by somebody else (Petrini,
 * Kerbyson, Pakin, 2003; fixed work quantum benchmarks). */
#ifndef WULF_FIXED_WORK_H
#define WULF_FIXED_WORK_H

#include "probe/operation.h"

/* Visits are longer than those of the network, to see what comes a hundred times a second. */
enum { FIXED_WORK_US = 100, FIXED_WORK_VISIT_SCALE = 10 };

/* Time every iteration of a visit, each of work that lasts `work_us` where nothing disturbs it. It is the
 * same work in all visits of a launch. */
void fixed_work_visit(struct visit *visit, uint64_t work_us);

#endif
