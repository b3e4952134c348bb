#include "guard/table.h"

#include "guard/kind.h"

#include <string.h>

#define KIND(name, rank, lasts, interface) {#name, rank, lasts, interface, &kind_##name},
#define KNOB(...)
static const struct known_kind KINDS[] = {
#include "guard/table.inc"
};
#undef KIND
#undef KNOB

#define KIND(...)
#define KNOB(knob, kind, target, type, words, rank, ...)                                                     \
    {knob, kind, target, type, {__VA_ARGS__}, words, rank},
static const struct known_knob KNOBS[] = {
#include "guard/table.inc"
};
#undef KIND
#undef KNOB

enum { FIRST_RANK = -1, LAST_RANK = 9999 };

const struct known_kind *kind_named(struct bytes name) {
    for (size_t i = 0; i < COUNT(KINDS); i++)
        if (bytes_are(name, KINDS[i].name))
            return &KINDS[i];
    return NULL;
}

/* The two are compared piece by piece: the interface's name is put together with nothing. */
static bool is_target(const char *known, struct bytes interface, struct bytes target) {
    for (;;) {
        const char *here = strstr(known, "INTERFACE");
        const size_t size = here ? (size_t)(here - known) : strlen(known);
        if (target.size < size || memcmp(target.at, known, size) != 0)
            return false;
        target = bytes_from(target, size);
        if (!here)
            return target.size == 0;
        if (target.size < interface.size || memcmp(target.at, interface.at, interface.size) != 0)
            return false;
        target = bytes_from(target, interface.size);
        known = here + strlen("INTERFACE");
    }
}

const struct known_knob *knob_at(struct bytes knob, struct bytes kind, struct bytes interface,
                                 struct bytes target) {
    for (size_t i = 0; i < COUNT(KNOBS); i++)
        if (bytes_are(knob, KNOBS[i].knob) && bytes_are(kind, KNOBS[i].kind) &&
            is_target(KNOBS[i].target, interface, target))
            return &KNOBS[i];
    return NULL;
}

const struct known_knob *knob_named(struct bytes name) {
    for (size_t i = 0; i < COUNT(KNOBS); i++)
        if (bytes_are(name, KNOBS[i].knob))
            return &KNOBS[i];
    return NULL;
}

const struct known_knob *knob_numbered(size_t number) {
    return number < COUNT(KNOBS) ? &KNOBS[number] : NULL;
}

size_t knob_number(const struct known_knob *row) { return (size_t)(row - KNOBS); }

const struct known_knob *knob_of_target(const char *kind, const char *target) {
    for (size_t i = 0; i < COUNT(KNOBS); i++)
        if (is_same(KNOBS[i].kind, kind) && is_same(KNOBS[i].target, target))
            return &KNOBS[i];
    return NULL;
}

int rank_of(const char *knob, const char *kind) {
    for (size_t i = 0; i < COUNT(KNOBS); i++)
        if (is_same(knob, KNOBS[i].knob))
            return KNOBS[i].rank;
    for (size_t i = 0; i < COUNT(KINDS); i++)
        if (is_same(knob, KINDS[i].name) || is_same(kind, KINDS[i].name))
            return KINDS[i].rank;
    return LAST_RANK;
}

int back_rank_of(const char *knob, const char *kind) {
    /* TuneD and services read files when they are put back: what these say must be as before by then. */
    return is_same(kind, "stored") ? FIRST_RANK : rank_of(knob, kind);
}
