/* What a rank cannot know from its own stream and is told by others before it begins: how much its neighbours
 * send, and what the tasks of a farm are. */
#ifndef WULF_EMULATE_LEARNED_H
#define WULF_EMULATE_LEARNED_H

#include "emulate/teams.h"

struct task {
    uint64_t size, compute_ns, result; /* bytes, time, bytes */
};

struct farm {
    const struct team *team;
    uint64_t tasks;
    struct task *items;
};

/* In the order in which they are needed. */
struct learned {
    int *counts; /* bytes from each neighbour, one exchange after the other */
    size_t count_of, count_room;
    struct farm *farms;
    size_t farm_of, farm_room;
};

/* All ranks call it. */
int learned_make(struct learned *learned, const struct stream *stream, const struct teams *teams,
                 struct failure *failure);
void learned_free(struct learned *learned);

#endif
