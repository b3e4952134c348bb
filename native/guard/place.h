/* Where files are: a directory such as /opt may be the same one on many nodes, and a root may be gone after a
 * boot. */
#ifndef WULF_GUARD_PLACE_H
#define WULF_GUARD_PLACE_H

#include "guard/step.h"

/* Whether a file is on a disk that no other machine can have. */
bool place_is_local(const char *path);
/* A line for each step that writes a file: file STEP PATH TYPE KEY HOLDER FORGETS VALUE. */
void where(const struct plan *plan);

#endif
