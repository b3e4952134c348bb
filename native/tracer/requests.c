#include "tracer/requests.h"

#include <stdlib.h>
#include <string.h>

/* Numbers by handle, in a table with open addressing that is at most half full. */
static struct {
    struct request *all; /* by number; 0 is none */
    uint32_t room, used, free;
    uint32_t *table;
    uint32_t slots, filled;
} own;

static uint32_t place_of(MPI_Request handle) {
    uint64_t key = 0;
    memcpy(&key, &handle, sizeof handle);
    return (uint32_t)(key * 0x9e3779b97f4a7c15U >> 32) & (own.slots - 1);
}

/* Where a handle is, or would be. */
static uint32_t *seek(MPI_Request handle) {
    uint32_t place = place_of(handle);
    while (own.table[place] != 0 && own.all[own.table[place]].handle != handle)
        place = (place + 1) & (own.slots - 1);
    return &own.table[place];
}

static bool widen(void) {
    const uint32_t old_slots = own.slots;
    uint32_t *old = own.table;
    uint32_t *table = calloc(old_slots > 0 ? 2 * (size_t)old_slots : 1024, sizeof *table);
    if (table == NULL)
        return false;
    own.table = table;
    own.slots = old_slots > 0 ? 2 * old_slots : 1024;
    for (uint32_t place = 0; place < old_slots; place++)
        if (old[place] != 0)
            *seek(own.all[old[place]].handle) = old[place];
    free(old);
    return true;
}

static uint32_t take_number(void) {
    if (own.free != 0) {
        const uint32_t number = own.free;
        own.free = own.all[number].next;
        return number;
    }
    if (own.used + 1 >= own.room) {
        const uint32_t room = own.room > 0 ? 2 * own.room : 1024;
        struct request *all = realloc(own.all, room * sizeof *all);
        if (all == NULL)
            return 0;
        own.all = all;
        own.room = room;
    }
    return ++own.used;
}

uint32_t request_add(MPI_Request handle, struct request like) {
    if (2 * (own.filled + 1) > own.slots && !widen())
        return 0;
    const uint32_t number = take_number();
    if (number == 0)
        return 0;
    uint32_t *place = seek(handle);
    if (*place == 0)
        own.filled++;
    like.handle = handle;
    like.next = *place;
    own.all[number] = like;
    *place = number;
    return number;
}

uint32_t request_find(MPI_Request handle) {
    return own.slots == 0 || handle == MPI_REQUEST_NULL ? 0 : *seek(handle);
}

uint32_t request_take(MPI_Request handle) {
    uint32_t number = request_find(handle);
    while (number != 0 && own.all[number].is_taken)
        number = own.all[number].next;
    if (number != 0)
        own.all[number].is_taken = true;
    return number;
}

struct request *request_get(uint32_t number) { return &own.all[number]; }

/* Others that were pushed on by what was here move up. */
static void close_gap(uint32_t gap) {
    for (uint32_t place = (gap + 1) & (own.slots - 1); own.table[place] != 0;
         place = (place + 1) & (own.slots - 1)) {
        const uint32_t wanted = place_of(own.all[own.table[place]].handle);
        if (((place - wanted) & (own.slots - 1)) >= ((place - gap) & (own.slots - 1))) {
            own.table[gap] = own.table[place];
            gap = place;
        }
    }
    own.table[gap] = 0;
}

void request_remove(uint32_t number) {
    uint32_t *place = seek(own.all[number].handle);
    if (*place == number) {
        *place = own.all[number].next;
        if (*place == 0) {
            own.filled--;
            close_gap((uint32_t)(place - own.table));
        }
    } else {
        uint32_t before = *place;
        while (own.all[before].next != number)
            before = own.all[before].next;
        own.all[before].next = own.all[number].next;
    }
    own.all[number].next = own.free;
    own.free = number;
}

bool request_some_cancelled(void) {
    for (uint32_t number = 1; number <= own.used; number++)
        if (own.all[number].is_cancelled)
            return true;
    return false;
}
