/* A network device behind the name of an interface. */
#ifndef WULF_GUARD_DEVICE_H
#define WULF_GUARD_DEVICE_H

#include "guard/base.h"

/* Its permanent address; where it has none "ADDRESS INDEX", as they are now; NULL where there is no such
 * interface. */
const char *device_identity(const char *interface);
/* Whether these, which were noted at two times, may be of one device: a guard of before noted an address
 * without its index. */
bool device_may_be_same(const char *known, const char *now, bool same_boot);
/* Why the device of that name is not the known one: by its permanent address; without one it has the same
 * index or address in the same boot, and the same name in another one. NULL where it is. */
const char *device_is_not(const char *interface, const char *known, bool same_boot);
/* Its permanent address; NULL where it has none. */
const char *device_permanent(const char *interface);

#endif
