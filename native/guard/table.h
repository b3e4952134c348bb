/* What there is to set: made from data/access.toml and data/knobs by `wulf.node.change.table`. */
#ifndef WULF_GUARD_TABLE_H
#define WULF_GUARD_TABLE_H

#include "guard/read/value.h"

struct kind;

struct known_kind {
    const char *name;
    int rank;
    bool lasts, of_interface;
    const struct kind *kind;
};

struct known_knob {
    const char *knob, *kind, *target;
    enum value_type type;
    struct range ranges[MOST_RANGES]; /* of each number */
    const char *words;
    int rank;
};

/* NULL where there is none. */
const struct known_kind *kind_named(struct bytes name);
/* The knob of that kind and target; `interface` stands for INTERFACE in it. NULL where there is none. */
const struct known_knob *knob_at(struct bytes knob, struct bytes kind, struct bytes interface,
                                 struct bytes target);
/* The knob of that name, whatever it is of. NULL where there is none. */
const struct known_knob *knob_named(struct bytes name);
/* The knob of that kind and target; NULL where there is none. */
const struct known_knob *knob_of_target(const char *kind, const char *target);
/* Rows by their number, which means something to this program alone; NULL where there is none. */
const struct known_knob *knob_numbered(size_t number);
size_t knob_number(const struct known_knob *row);
/* When a knob is set and put back: what makes others anew comes before these. What is not known comes last.
 */
int rank_of(const char *knob, const char *kind);
/* … and in which it is put back. */
int back_rank_of(const char *knob, const char *kind);

#endif
