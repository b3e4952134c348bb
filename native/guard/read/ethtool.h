/* What ethtool shows, as names and values that it takes. */
#ifndef WULF_GUARD_READ_ETHTOOL_H
#define WULF_GUARD_READ_ETHTOOL_H

#include "guard/base.h"
#include "guard/read/cursor.h"

enum ethtool_group { COALESCE, RING, CHANNELS, FEATURE, PAUSE, EEE, GROUPS };

/* Called for each parameter. `maximum` is that of a ring or of channels. */
typedef void ethtool_pair(void *of, const char *name, size_t name_size, struct bytes value, bool maximum);

void read_ethtool(enum ethtool_group group, struct bytes said, ethtool_pair *pair, void *of);
/* The name of a feature as `ethtool -K` takes it. */
const char *ethtool_short(struct bytes name);

#endif
