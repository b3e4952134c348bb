#include "core/node.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void node_describe(struct node *node) {
    memset(node, 0, sizeof *node);
    if (gethostname(node->host, sizeof node->host - 1) != 0)
        memcpy(node->host, "unknown", sizeof "unknown");
    const size_t highest = (size_t)NODE_CPU_BYTES * 8;
    cpu_set_t *set = CPU_ALLOC(highest);
    const size_t bytes = CPU_ALLOC_SIZE(highest);
    if (set != NULL && sched_getaffinity(0, bytes, set) == 0)
        for (size_t cpu = 0; cpu < highest; cpu++)
            if (CPU_ISSET_S(cpu, bytes, set))
                node->cpus[cpu / 8] |= (unsigned char)(1U << (cpu % 8));
    CPU_FREE(set);
}
