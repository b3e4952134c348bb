/* Faults at the steps that are noted, for tests: in builds with WULF_FAULTS alone. */
#ifndef WULF_GUARD_FAULT_H
#define WULF_GUARD_FAULT_H

#include <stdbool.h>
#include <stddef.h>

#ifdef WULF_FAULTS
void fault_point(const char *verb, const char *words);
bool fault_bare(void);
const char *fault_address(void);
const char *fault_of_reader(void);
void fault_as_reader(const char *fault, void *record, size_t size);
#else
static inline void fault_point(const char *verb, const char *words) {
    (void)verb;
    (void)words;
}
/* Whether tests want a node without systemd. */
static inline bool fault_bare(void) { return false; }
/* The permanent address that a virtual interface shall have; "" for its own. */
static inline const char *fault_address(void) { return ""; }
/* What a reader without rights does that somebody has taken over, when it has read. */
static inline const char *fault_of_reader(void) { return ""; }
static inline void fault_as_reader(const char *fault, void *record, size_t size) {
    (void)fault;
    (void)record;
    (void)size;
}
#endif

#endif
