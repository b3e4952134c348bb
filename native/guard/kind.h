/* A kind of access: how one thing of a node is read, set and put back. One file of kind/ each. */
#ifndef WULF_GUARD_KIND_H
#define WULF_GUARD_KIND_H

#include "guard/items.h"
#include "guard/step.h"

struct kind {
    /* All that a change of it may change; FAILED with a complaint where it cannot be read. Nothing begins
     * where there is nothing. */
    enum outcome (*save)(const struct step *step, struct state *state);
    /* Set the value. */
    enum outcome (*put)(const struct step *step);
    /* Put these items back, which are some of `before`, what `save` gave then. One that does not come back
     * keeps no other from it. */
    enum outcome (*restore)(const struct step *step, const struct state *items, const struct state *before,
                            const struct state *after);
    /* The value as the catalogue writes it. */
    enum outcome (*get)(const struct step *step, struct text *value);
    /* Of a kind that is one value, with its target as the key: sets it to any. `restore` and `get` are then
     * NULL. */
    enum outcome (*set)(const struct step *step, const char *value);
    /* Whether an item, which the change has not set itself, moves by itself after what it has set. May be
     * NULL. */
    bool (*moves)(const struct state *before, const struct state *after, const char *key);
    /* Whether `save` gives of another step of the kind, on the same interface, the same as of this one; which
     * of it a step sets itself is what it names. NULL: no two steps give the same. */
    bool (*shares)(const struct step *step, const struct step *other);
    bool (*names)(const struct step *step, const char *key);
    /* Whether an item that is not there, of what could be read, is gone with what it belonged to, so that
     * nothing is to be put back. May be NULL. */
    bool (*is_gone)(const struct step *step, const char *key);
    /* Whether what is there instead of an item is others' alone, so that nothing more is to be put back. May
     * be NULL. */
    bool (*is_others)(const struct item *wanted, const struct state *before, const struct state *after,
                      const struct state *now);
    /* Whether an item that was not there before is taken away again; otherwise it came with something else.
     * May be NULL. */
    bool (*removes)(const char *key);
    /* Whether nothing that it is of is there any more, so that nobody can set it: NULL where that cannot be
     * told. */
    bool (*is_absent)(const struct step *step);
    /* The value of an item that only takes away what was set by the name of an interface, whatever device has
     * it now. NULL where what is set is in the device. */
    const char *nothing;
    /* Whether what the change took away is asked for although somebody else has made it anew: restore says
     * so. */
    bool insists;
    /* Of an earlier boot: what is put back then. May be NULL: the same. */
    enum outcome (*restore_at_boot)(const struct step *step, const struct state *items);
    /* Whether an item is as before, after a boot. May be NULL: the same value. */
    bool (*is_back_at_boot)(const char *wanted, const char *now);
};

/* Whether two steps have one state, of which each sets a part. */
bool kind_shares(const struct step *step, const struct step *other);
/* Whether putting this back only takes away what is there by the name of an interface. */
bool kind_takes_away(const struct kind *kind, const struct state *before);
MUST_CHECK enum outcome kind_restore(const struct kind *kind, const struct step *step,
                                     const struct state *items, const struct state *before,
                                     const struct state *after);
MUST_CHECK enum outcome kind_get(const struct kind *kind, const struct step *step, struct text *value);

/* What somebody else has set is theirs: said in the answer and the log. */
void say_left(const struct step *step, const char *what);
/* What is not there any more cannot be put back. */
void say_gone(const struct step *step, const char *why);

extern const struct kind kind_tuned, kind_service, kind_module, kind_ethtool, kind_link, kind_route,
    kind_host_route, kind_sysctl, kind_file, kind_turbo, kind_idle_states, kind_pm_qos, kind_firewall,
    kind_mpi_parameter, kind_irq_affinity, kind_stored, kind_unit;

#endif
