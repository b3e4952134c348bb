/* What of a file is in this node's memory (the page cache), and letting it go. */
#ifndef WULF_MPI_RESIDENT_H
#define WULF_MPI_RESIDENT_H

#include <stddef.h>
#include <stdint.h>

/* A file as the kernel has it, beside the MPI library. */
struct resident {
    int fd;
    uint64_t pages, in_memory; /* looked at so far */
};

/* 0, or -1 with errno. */
int resident_open(struct resident *resident, const char *path);
void resident_close(struct resident *resident);

/* Ask the kernel to forget the file's pages: those that are on the disk already. */
void resident_drop(const struct resident *resident);

/* Count the pages of a piece, and those in memory; nothing is counted where the kernel does not say. */
void resident_look(struct resident *resident, uint64_t offset, size_t size);

#endif
