/* Where a rank runs. */
#ifndef WULF_NODE_H
#define WULF_NODE_H

#include <stdbool.h>

enum { NODE_HOST_BYTES = 256, NODE_CPU_BYTES = 1024 };

/* Plain bytes, so that it can be sent as it is. */
struct node {
    char host[NODE_HOST_BYTES];
    unsigned char cpus[NODE_CPU_BYTES]; /* CPU n is bit n % 8 of byte n / 8 */
};

/* The node and the CPUs this process may run on. */
void node_describe(struct node *node);

static inline bool node_has_cpu(const struct node *node, unsigned cpu) {
    return cpu / 8 < NODE_CPU_BYTES && (node->cpus[cpu / 8] >> (cpu % 8) & 1) != 0;
}

#endif
