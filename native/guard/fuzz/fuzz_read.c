/* libFuzzer on all readers. */
#include "guard/fuzz/readers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    /* Exactly as large as it is: what goes beyond it is seen. */
    char *exact = malloc(size ? size : 1);
    if (!exact)
        return 0;
    memcpy(exact, data, size);
    const size_t sum = read_everything(exact, size);
    free(exact);
    return sum == SIZE_MAX;
}
