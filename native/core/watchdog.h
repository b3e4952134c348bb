/* Ends the process when nothing has moved for too long, even while a library call blocks. */
#ifndef WULF_WATCHDOG_H
#define WULF_WATCHDOG_H

#include <stdatomic.h>
#include <stdint.h>

extern _Atomic uint32_t watchdog_beats;

/* Something has moved. Cheap enough for every iteration: no locked instruction, one writer. */
static inline void watchdog_beat(void) {
    const uint32_t beats = atomic_load_explicit(&watchdog_beats, memory_order_relaxed);
    atomic_store_explicit(&watchdog_beats, beats + 1, memory_order_relaxed);
}

/* From now on, or anew: when there is no beat for `timeout_s`, write an error line with the code
 * `peer_lost` to `fd` and end with exit code 3. It looks four times a second, by a real-time signal:
 * libraries use SIGALRM. Returns 0, or -1 with errno. */
int watchdog_start(int fd, const char *peer, unsigned timeout_s);

/* Write an error line naming `peer` and end, too, when a launcher asks us to (SIGTERM, SIGUSR1). */
int watchdog_on_terminate(int fd, const char *peer, const char *message);
/* Where nobody hears of it: end by SIGTERM as usual, but without the file of the launch. */
int watchdog_leave_on_terminate(void);

#endif
