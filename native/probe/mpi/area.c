#include "probe/mpi/area.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096 };

static unsigned char *area;
static size_t area_bytes;

unsigned char *area_of(size_t bytes, struct failure *failure) {
    if (bytes <= area_bytes)
        return area;
    const size_t whole = (bytes / PAGE + 1) * PAGE;
    void *fresh = NULL;
    if (posix_memalign(&fresh, PAGE, whole) != 0) {
        failure_set(failure, "system", "", "no memory for %zu MiB", whole >> 20);
        return NULL;
    }
    memset(fresh, 0, whole);
    free(area);
    area = fresh;
    area_bytes = whole;
    return area;
}
