/* A network device behind the name of an interface. */
#ifndef WULF_GUARD_DEVICE_H
#define WULF_GUARD_DEVICE_H

#include "guard/base.h"

/* Its permanent address, or its address where it has no permanent one; NULL where there is no such interface.
 */
const char *device_address(const char *interface);
/* Its permanent address; NULL where it has none. */
const char *device_permanent(const char *interface);

#endif
