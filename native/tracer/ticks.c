#include "tracer/ticks.h"

#include <stdio.h>
#include <string.h>

#define CLOCK_SOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"
enum { TRIES = 16, SHORTEST_NS = 5000000 };

struct ticks ticks = {.scale = UINT64_C(1) << 32};

/* The same moment on both clocks. */
struct moment {
    uint64_t ns, ticks;
};

static struct moment loaded;

/* Of several readings the one that was interrupted least. */
static struct moment both(void) {
    struct moment best = {0};
    uint64_t shortest = UINT64_MAX;
    for (int try = 0; try < TRIES; try++) {
        const uint64_t before = clock_now_ns();
        const uint64_t now = ticks_now();
        const uint64_t took = clock_now_ns() - before;
        if (took < shortest) {
            shortest = took;
            best = (struct moment){before + took / 2, now};
        }
    }
    return best;
}

void ticks_begin(void) {
#if defined(__x86_64__)
    /* It has found out that the counter runs at one rate, in idle states too, and alike on all processors. */
    char name[16] = "";
    FILE *file = fopen(CLOCK_SOURCE, "re");
    if (file != NULL) {
        if (fgets(name, sizeof name, file) == NULL)
            name[0] = '\0';
        fclose(file);
    }
    ticks.has_counter = strcmp(name, "tsc\n") == 0;
#endif
    loaded = both();
}

void ticks_calibrate(void) {
    if (!ticks.has_counter)
        return;
    struct moment now = both();
    while (now.ns - loaded.ns < SHORTEST_NS)
        now = both();
    ticks.scale = (uint64_t)(((ticks_wide)(now.ns - loaded.ns) << 32) / (now.ticks - loaded.ticks));
}
