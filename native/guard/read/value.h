/* What a value may be, by its type: never a pattern. */
#ifndef WULF_GUARD_READ_VALUE_H
#define WULF_GUARD_READ_VALUE_H

#include "guard/base.h"
#include "guard/read/cursor.h"

enum value_type {
    NUMBER,   /* in a range, or one of the words beside it */
    WORDS,    /* one of the words */
    NUMBERS,  /* "20000 10": each in a range of its own */
    RISING,   /* "4096 131072 6291456": and none smaller than the one before it */
    NAME,     /* "network-latency" */
    TEXT,     /* numbers and names with commas: a driver's parameter */
    DURATION, /* "default", "200", "5ms" */
    CPUS,     /* "0-3 5": a list of CPUs for each */
    STATES,   /* "all allowed", "disabled: C1 C6" */
    MASKS,    /* "f", "ff,ffffffff 3" */
    LISTS,    /* "self,tcp ob1", "^ofi" */
    PAIRS,    /* "combined 4", "rx 2 tx 2" */
    SIZES,    /* "512 256", "max max" */
    SWITCHES, /* "on off" */
};

struct range {
    int64_t low, high;
};

enum { MOST_RANGES = 3 };

/* `ranges` ends with one of zeros, where it has not as many as there may be. */
MUST_CHECK enum outcome read_value_of(enum value_type type, const struct range ranges[MOST_RANGES],
                                      const char *words, struct bytes value);

#endif
