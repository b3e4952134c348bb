/* The memory of messages. */
#ifndef WULF_BUFFERS_H
#define WULF_BUFFERS_H

#include <stddef.h>

/* Two page-aligned buffers with room for one byte more than a message; all pages are there already. */
struct buffers {
    unsigned char *first, *second;
};

int buffers_new(struct buffers *buffers, size_t size);
void buffers_free(struct buffers *buffers);

#endif
