/* What arrives is what was sent: looked at in a pass that does not count. */
#include <string.h>

#include "core/payload.h"
#include "emulate/emulation.h"

enum { SPOILED = 0xa5 };

void spoil(const struct emulation *emulation, unsigned char *in, uint64_t bytes) {
    if (emulation->checks)
        memset(in, SPOILED, bytes);
}

void check_bytes(struct emulation *emulation, const unsigned char *in, uint64_t bytes,
                 const struct team *team, int source, uint64_t count) {
    if (!emulation->checks)
        return;
    const uint64_t seed = (uint64_t)team->members[source];
    if (count != bytes || !payload_matches(in, 0, bytes, seed, 0))
        emulation->wrong++;
}

void check_message(struct emulation *emulation, const unsigned char *in, uint64_t bytes,
                   const struct team *team, int source, const MPI_Status *status) {
    int count = 0;
    if (emulation->checks)
        MPI_Get_count(status, MPI_BYTE, &count);
    check_bytes(emulation, in, bytes, team, source, (uint64_t)count);
}
