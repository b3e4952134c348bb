/* CRC-32C (Castagnoli), with the processor's instruction where there is one. */
#ifndef WULF_TRACER_CHECKSUM_H
#define WULF_TRACER_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* Of what came before (0 at the beginning) and of these bytes. */
uint32_t checksum(uint32_t before, const void *data, size_t bytes);

#endif
