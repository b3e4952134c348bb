/* Lines of `ip -4 route show`. */
#ifndef WULF_GUARD_READ_IP_H
#define WULF_GUARD_READ_IP_H

#include "guard/base.h"
#include "guard/read/cursor.h"

struct route_line {
    struct bytes destination, metric;
    /* The value of a property, without "lock"; size 0 where the line has none. */
    struct bytes property;
    /* Whether it is one with several hops, or one that goes nowhere: such a line cannot be given back as it
     * was. */
    bool is_other;
};

/* Whether every line is one of a route: anything else is another program's, or an error. */
bool are_routes(struct bytes text);
/* What a line says; DONE, or FAILED for an empty line. */
MUST_CHECK enum outcome read_route(struct bytes line, const char *property, struct route_line *route);
/* The words of a route as `ip` takes them: without what it only shows (linkdown), without "lock" of rto_min,
 * and without the property. `word` is called for each. */
void each_route_word(struct bytes line, const char *property, void (*word)(void *of, struct bytes word),
                     void *of);

#endif
