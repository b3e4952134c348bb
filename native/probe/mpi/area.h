/* Memory beside a visit's messages: one piece, which is kept, as fresh pages would cost more than what is
 * timed. */
#ifndef WULF_MPI_AREA_H
#define WULF_MPI_AREA_H

#include <stddef.h>

#include "core/failure.h"

/* So many bytes at least, page aligned and zero when they are new; NULL with `failure` set. */
unsigned char *area_of(size_t bytes, struct failure *failure);

#endif
