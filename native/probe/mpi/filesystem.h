/* What a directory is on: whether its files are memory, a disk of this node, or another machine's. */
#ifndef WULF_MPI_FILESYSTEM_H
#define WULF_MPI_FILESYSTEM_H

#include <stdint.h>

/* Its usual name, or its number (statfs) where that is not known here; "unknown" where the kernel says none.
 */
const char *filesystem_name(const char *directory);

/* Bytes that may still be written there; 0 where the kernel does not say. */
uint64_t filesystem_free(const char *directory);

#endif
