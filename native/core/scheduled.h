/* How this process was scheduled: what another one on its CPU takes from it shows here and nowhere else. */
#ifndef WULF_SCHEDULED_H
#define WULF_SCHEDULED_H

#include <stdint.h>

/* What a kernel does not say. */
#define SCHEDULED_UNKNOWN UINT64_MAX

/* Of the thread that asks, since it began [ns], or since another look. */
struct scheduled {
    uint64_t at_ns, ran_ns;
    uint64_t waited_ns; /* could run and had no CPU */
    uint64_t displaced; /* times that another process took its CPU */
};

struct scheduled scheduled_now(void);

/* What happened since `begin`. */
struct scheduled scheduled_since(const struct scheduled *begin);

#endif
