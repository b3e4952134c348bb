/* The packet filter: its tables, and the rules in them that are ours, which the journal names. */
#ifndef WULF_GUARD_KIND_RULES_H
#define WULF_GUARD_KIND_RULES_H

#include "guard/file.h"
#include "guard/items.h"
#include "guard/read/nft.h"

/* What there is, with handles; DONE, also where nft is not installed and nothing is there. */
MUST_CHECK enum outcome rules_list(struct text *listing);
/* The old tables that are in use: the names of their programs, in `programs`. */
size_t legacy_programs(const char *programs[2]);

/* Our rules: read from the journal, what is still there of them. */
struct owned {
    struct state rules; /* "INTERFACE FAMILY TABLE TABLE_HANDLE CHAIN HANDLE" → the rule's text, or "table" */
    struct text listing;
};
MUST_CHECK enum outcome owned_read(struct owned *owned);
/* tracked, exempt or notrack. */
const char *owned_mode(const struct owned *owned, const char *interface);
bool is_owned(const struct owned *owned, const struct nft_line *line);
/* Interfaces that have rules of ours. */
struct names owned_interfaces(const struct owned *owned);
/* Take away what is ours for an interface, and make it so. */
MUST_CHECK enum outcome exempt(const char *interface, const char *mode);
/* All of ours has gone with the tables. */
MUST_CHECK enum outcome owned_forget(void);

#endif
