#include "probe/reference.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/sort.h"
#include "core/watchdog.h"

enum { TIMES_MAX = 1 << 14 }; /* a longer visit just ends */

struct reference {
    uint64_t visit_ns;
    int ends[2];
    uint64_t times_ns[TIMES_MAX];
};

struct reference *reference_open(uint64_t visit_us, struct failure *failure) {
    struct reference *reference = malloc(sizeof *reference);
    if (reference == NULL) {
        failure_set(failure, "system", "", "no memory for the reference");
        return NULL;
    }
    memset(reference, 0, sizeof *reference); /* no page fault while the clock runs */
    reference->visit_ns = visit_us * 1000;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, reference->ends) == 0)
        return reference;
    failure_set(failure, "system", "", "no Unix sockets for the reference: %s", strerror(errno));
    free(reference);
    return NULL;
}

void reference_close(struct reference *reference) {
    if (reference == NULL)
        return;
    close(reference->ends[0]);
    close(reference->ends[1]);
    free(reference);
}

/* A byte from one end to the other. It is there when it is read, so nobody waits or is woken. */
static bool pass(int from, int to) {
    unsigned char byte = 1;
    return write(from, &byte, 1) == 1 && read(to, &byte, 1) == 1;
}

int reference_visit(struct reference *reference, double *median_ns, struct failure *failure) {
    const int near = reference->ends[0];
    const int far = reference->ends[1];
    size_t count = 0;
    bool moved = pass(near, far) && pass(far, near); /* not timed: finds cold caches */
    const uint64_t begin = clock_now_ns();
    uint64_t before = begin;
    do {
        moved = moved && pass(near, far) && pass(far, near);
        watchdog_beat();
        const uint64_t now = clock_now_ns();
        reference->times_ns[count++] = now - before;
        before = now;
    } while (moved && count < TIMES_MAX && before - begin < reference->visit_ns);
    if (!moved)
        return failure_set(failure, "system", "", "the reference's Unix sockets failed: %s", strerror(errno));
    *median_ns = median_u64(reference->times_ns, count);
    return 0;
}
