#ifndef WULF_GUARD_KIND_PM_QOS_H
#define WULF_GUARD_KIND_PM_QOS_H

#include <stdbool.h>

/* Whether the holder belongs to the service that runs this guard. */
extern bool pm_qos_in_service;
/* The process that holds a limit: does not return. */
_Noreturn void pm_qos_hold(const char *device, const char *value);

#endif
