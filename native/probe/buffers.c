#include "probe/buffers.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096 };

static unsigned char *new_buffer(size_t size) {
    void *memory = NULL;
    const size_t bytes = (size / PAGE + 1) * PAGE;
    if (posix_memalign(&memory, PAGE, bytes) != 0)
        return NULL;
    memset(memory, 0, bytes);
    return memory;
}

int buffers_new(struct buffers *buffers, size_t size) {
    buffers->first = new_buffer(size);
    buffers->second = new_buffer(size);
    if (buffers->first != NULL && buffers->second != NULL)
        return 0;
    buffers_free(buffers);
    return -1;
}

void buffers_free(struct buffers *buffers) {
    free(buffers->first);
    free(buffers->second);
    *buffers = (struct buffers){0};
}
