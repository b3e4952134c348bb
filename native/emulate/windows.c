/* Memory that other ranks write into: what is put is seen after the next fence. */
#include <stdlib.h>

#include "core/payload.h"
#include "emulate/emulation.h"

/* What is put somewhere depends on the place alone, so that whose memory it is knows what must be there. */
enum { PUT_SEED = 0x7075 };

static struct window *window_of(const struct emulation *emulation, const struct entry *entry) {
    return &emulation->windows[entry->record.tag];
}

int perform_window(struct emulation *emulation, const struct entry *entry) {
    struct window *window = window_of(emulation, entry);
    window->bytes = entry->record.bytes;
    window->memory = calloc(window->bytes + 1, 1);
    if (window->memory == NULL)
        return emulation_failed(emulation, "no memory for a window of %llu B",
                                (unsigned long long)window->bytes);
    const int code = MPI_Win_create(window->memory, (MPI_Aint)window->bytes, 1, MPI_INFO_NULL,
                                    team_at(&emulation->teams, entry->record.comm)->comm, &window->handle);
    return code == MPI_SUCCESS ? MPI_Win_set_errhandler(window->handle, MPI_ERRORS_RETURN) : code;
}

/* One begins an exchange, and has no bytes; the next one ends it, and says how many have come. */
int perform_fence(struct emulation *emulation, const struct entry *entry) {
    const struct window *window = window_of(emulation, entry);
    const uint64_t bytes = entry->record.bytes;
    if (bytes > window->bytes)
        return emulation_failed(emulation, "more is put into a window than it holds");
    if (bytes == 0)
        spoil(emulation, window->memory, window->bytes);
    const int code = MPI_Win_fence(0, window->handle);
    if (emulation->checks && code == MPI_SUCCESS && !payload_matches(window->memory, 0, bytes, PUT_SEED, 0))
        emulation->wrong++;
    return code;
}

int perform_put(struct emulation *emulation, const struct entry *entry) {
    const uint64_t place = entry_number(entry, 0);
    const int size = (int)entry->record.bytes;
    return MPI_Put(emulation->put_out + place, size, MPI_BYTE, entry->record.peer, (MPI_Aint)place, size,
                   MPI_BYTE, window_of(emulation, entry)->handle);
}

int perform_window_free(struct emulation *emulation, const struct entry *entry) {
    struct window *window = window_of(emulation, entry);
    const int code = MPI_Win_free(&window->handle);
    free(window->memory);
    *window = (struct window){.handle = MPI_WIN_NULL};
    return code;
}

void windows_fill(struct emulation *emulation) {
    payload_fill(emulation->put_out, 0, emulation->survey.put_bytes, PUT_SEED, 0);
}
