/* The listing of `nft -nn -a list ruleset`, line by line; and the elements of its sets. */
#ifndef WULF_GUARD_READ_NFT_H
#define WULF_GUARD_READ_NFT_H

#include "guard/base.h"
#include "guard/read/cursor.h"

enum nft_what {
    NFT_TABLE, /* a table begins */
    NFT_END,   /* it ends */
    NFT_CHAIN, /* a chain begins */
    NFT_BASE,  /* the line that makes it one that filters what comes in or goes out; `is_input` says which */
    NFT_RULE,  /* a rule */
    NFT_SET,   /* a set or a map begins */
    NFT_FLAGS, /* its flags; `is_dynamic` */
    NFT_ELEMENTS, /* all elements of a set, from "elements = {" to its end, in one */
    NFT_OTHER,
};

struct nft_line {
    enum nft_what what;
    struct bytes family, table, chain;
    uint64_t table_handle, handle;
    struct bytes text; /* without its handle; may be of several lines for elements */
    bool is_input, is_dynamic;
};

/* Whether it is tables to its end: anything else is another program's, an error, or the half of one. */
bool is_nft(struct bytes listing);
void read_nft(struct bytes listing, void (*line)(void *of, const struct nft_line *line), void *of);
/* Each element of "elements = { a, b }": commas within quotes are none between them. */
void each_element(struct bytes text, void (*element)(void *of, struct bytes element), void *of);
/* Where " expires TIME" is in an element, outside quotes, and the time [s]; false where it has none. */
bool read_expiry(struct bytes element, size_t *begin, size_t *end, uint64_t *seconds);
/* How much of a rule at `at` is a counter or another part that changes by itself: "packets 5 bytes 6"; 0 for
 * none. */
size_t passing_part(struct bytes text, size_t at);

#endif
