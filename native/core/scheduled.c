#include "core/scheduled.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>

#include "core/clock.h"

struct scheduled scheduled_now(void) {
    struct scheduled now = {.at_ns = clock_now_ns(),
                            .ran_ns = SCHEDULED_UNKNOWN,
                            .waited_ns = SCHEDULED_UNKNOWN,
                            .displaced = SCHEDULED_UNKNOWN};
    struct rusage usage;
    FILE *file = fopen("/proc/thread-self/schedstat", "re");
    if (file != NULL) {
        if (fscanf(file, "%" SCNu64 " %" SCNu64, &now.ran_ns, &now.waited_ns) != 2)
            now.ran_ns = now.waited_ns = SCHEDULED_UNKNOWN;
        fclose(file);
    }
    if (getrusage(RUSAGE_THREAD, &usage) == 0)
        now.displaced = (uint64_t)usage.ru_nivcsw;
    return now;
}

static uint64_t growth(uint64_t before, uint64_t after) {
    return before == SCHEDULED_UNKNOWN || after == SCHEDULED_UNKNOWN || after < before ? SCHEDULED_UNKNOWN
                                                                                       : after - before;
}

struct scheduled scheduled_since(const struct scheduled *begin) {
    const struct scheduled now = scheduled_now();
    return (struct scheduled){.at_ns = now.at_ns - begin->at_ns,
                              .ran_ns = growth(begin->ran_ns, now.ran_ns),
                              .waited_ns = growth(begin->waited_ns, now.waited_ns),
                              .displaced = growth(begin->displaced, now.displaced)};
}
