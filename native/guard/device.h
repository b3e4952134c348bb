/* A network device behind the name of an interface. */
#ifndef WULF_GUARD_DEVICE_H
#define WULF_GUARD_DEVICE_H

#include "guard/base.h"

/* Its permanent address; where it has none "ADDRESS INDEX", as they are now; NULL where there is no such
 * interface. */
const char *device_identity(const char *interface);
/* Whether these are of one device: by its permanent address; without one it has the same index or address in
 * the same boot, and the same name in another one. */
bool device_is_same(const char *known, const char *now, bool same_boot);
/* Its permanent address; NULL where it has none. */
const char *device_permanent(const char *interface);

#endif
