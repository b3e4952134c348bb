#include "probe/mpi/resident.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int resident_open(struct resident *resident, const char *path) {
    *resident = (struct resident){.fd = open(path, O_RDONLY | O_CLOEXEC)};
    return resident->fd < 0 ? -1 : 0;
}

void resident_close(struct resident *resident) {
    if (resident->fd >= 0)
        close(resident->fd);
    resident->fd = -1;
}

void resident_drop(const struct resident *resident) {
    posix_fadvise(resident->fd, 0, 0, POSIX_FADV_DONTNEED);
}

void resident_look(struct resident *resident, uint64_t offset, size_t size) {
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t first = offset / page * page;
    const size_t length = (size_t)(offset + size - first);
    const size_t pages = (length + page - 1) / page;
    unsigned char *said = malloc(pages);
    void *mapped =
        said == NULL ? MAP_FAILED : mmap(NULL, length, PROT_READ, MAP_SHARED, resident->fd, (off_t)first);
    if (mapped != MAP_FAILED) {
        if (mincore(mapped, length, said) == 0) {
            resident->pages += pages;
            for (size_t i = 0; i < pages; i++)
                resident->in_memory += said[i] & 1;
        }
        munmap(mapped, length);
    }
    free(said);
}
