/* Two settings in one launch: this node's guard makes either of them when the probe asks for it. */
#ifndef WULF_ALTERNATION_H
#define WULF_ALTERNATION_H

#include <stdbool.h>

#include "core/failure.h"

/* The settings are `a` and `b`. */
static inline bool alternation_is_arm(char arm) { return arm == 'a' || arm == 'b'; }

/* Have the guard that listens at the FIFO PLACE.ask make one of the settings; it answers at PLACE.answer.
 * Returns when that is set: 0, or -1 with `failure`. */
int alternation_ask(const char *place, char arm, struct failure *failure);

#endif
