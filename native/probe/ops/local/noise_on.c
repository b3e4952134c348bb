/* Fixed work on one given processor, so that each of a node is seen. */
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "core/node.h"
#include "probe/local/fixed_work.h"

enum { CPU_MOST = NODE_CPU_BYTES * 8 - 1 };

/* Work there, with room for the processors that this process may run on in `allowed` and for one in `only`.
 */
static int work_on(size_t cpu, cpu_set_t *allowed, cpu_set_t *only, size_t bytes, struct visit *visit,
                   struct failure *failure) {
    if (sched_getaffinity(0, bytes, allowed) != 0)
        return failure_set(failure, "system", "", "the kernel does not say which CPUs there are: %s",
                           strerror(errno));
    /* Asked for a processor outside of what it was given, the kernel would grant it. */
    if (!CPU_ISSET_S(cpu, bytes, allowed))
        return failure_set(failure, "system", "",
                           "CPU %zu is not there, or this process may not run on it: take one of "
                           "Cpus_allowed_list in /proc/self/status",
                           cpu);
    CPU_ZERO_S(bytes, only);
    CPU_SET_S(cpu, bytes, only);
    if (sched_setaffinity(0, bytes, only) != 0)
        return failure_set(failure, "system", "", "cannot run on CPU %zu: %s", cpu, strerror(errno));
    fixed_work_visit(visit, FIXED_WORK_US);
    if (sched_setaffinity(0, bytes, allowed) != 0)
        return failure_set(failure, "system", "", "cannot leave CPU %zu: %s", cpu, strerror(errno));
    return 0;
}

static int initiate(struct visit *visit, struct failure *failure) {
    const size_t bytes = CPU_ALLOC_SIZE(CPU_MOST + 1);
    cpu_set_t *allowed = CPU_ALLOC(CPU_MOST + 1);
    cpu_set_t *only = CPU_ALLOC(CPU_MOST + 1);
    const int status = allowed == NULL || only == NULL
                           ? failure_set(failure, "system", "", "no memory for a set of CPUs")
                           : work_on((size_t)visit->parameter, allowed, only, bytes, visit, failure);
    CPU_FREE(only);
    CPU_FREE(allowed);
    return status;
}

static const struct operation OPERATION = {
    .name = "noise_on",
    .link = LINK_NONE,
    .quantity = "time of fixed work",
    .divisor = 1,
    .timing = TIMING_ITERATION,
    .visit_scale = FIXED_WORK_VISIT_SCALE,
    .parameter = {.name = "CPU", .usual = 0, .low = 0, .high = CPU_MOST},
    .summary =
        "Fixed work of 100 µs on one given CPU: what else runs there shows as times above the shortest",
    .initiate = initiate,
};
WULF_OPERATION(OPERATION)
