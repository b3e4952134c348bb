#include "guard/change.h"

#include "guard/alternation.h"
#include "guard/answer.h"
#include "guard/back.h"
#include "guard/device.h"
#include "guard/history.h"
#include "guard/kind.h"
#include "guard/kind/made.h"
#include "guard/lock.h"
#include "guard/recover.h"
#include "guard/tool.h"
#include "guard/undo.h"
#include "guard/watch.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FULL_RUN "cannot write to " RUN_PLACE ": is it full?"
#define UNWATCHED "the watcher does not start, or cannot write to " RUN_PLACE
#define UNLOCKED "somebody has removed " RUN_PLACE " meanwhile"
#define UNITS "/etc/systemd/system/"

enum { SHOWN = 60 };

uid_t caller;
static bool swaps; /* its watcher has the next one to watch at once */

static char *in_tx(const char *tx, const char *name) { return print("tx/%s/%s", tx, name); }

static enum outcome set_deadline(const char *tx, int64_t seconds) {
    return keep_in_run(print("deadline.%s", tx), print("%lld", (long long)(now_s() + seconds)));
}

void not_begun(const char *tx, const char *why) {
    remove_own(state_place(), print("open.%s", tx));
    remove_own(run_place(), print("deadline.%s", tx));
    discard(tx);
    close_change(tx);
    fail(EXIT_FAILED, "%s", why);
}

/* --- begin --- */

static bool is_same_thing(const struct step *one, const struct step *other) {
    return is_same(one->knob, other->knob) ||
           (is_same(one->kind_name, other->kind_name) && is_same(one->interface, other->interface) &&
            is_same(one->target, other->target));
}

/* The new change must not be of what a stuck one could not put back, or nobody would know any more. */
static const char *same_thing(const char *stuck, const struct plan *plan) {
    struct plan what;
    if (what_of(stuck, &what) != DONE) {
        forgive();
        return "what is not known any more";
    }
    for (size_t i = 0; i < what.count; i++)
        for (size_t j = 0; j < plan->count; j++)
            if (is_same_thing(&what.steps[i], &plan->steps[j]))
                return plan->steps[j].knob;
    return NULL;
}

static void keep_off_stuck(const char *tx, const struct plan *plan) {
    const struct names stuck = open_changes(OPEN_STUCK);
    for (size_t i = 0; i < stuck.count; i++) {
        const char *same = same_thing(stuck.at[i], plan);
        if (same)
            not_begun(
                tx,
                print("%s is stuck, and it is of %s, too: mend what keeps it from being put back and run "
                      "'wulf rollback', or leave its values as they are with 'wulf rollback --abandon %s'",
                      stuck.at[i], same, stuck.at[i]));
    }
}

static void refuse_other_versions(void) {
    const struct tx_rows rows = journal();
    for (size_t i = 0; i < rows.count; i++)
        if (is_same(rows.at[i].state.word, "other"))
            fail(EXIT_BUSY,
                 "the journal here has %s, which another version of wulf has made: roll it back with that "
                 "version, or "
                 "leave its values as they are with 'wulf rollback --abandon %s'",
                 rows.at[i].name, rows.at[i].name);
}

static void check_begin(const char *tx, const char *owner) {
    if (is_word_of(tx, "- history original"))
        fail(EXIT_ERROR, "no change can be called %s", tx);
    require_owner(owner, caller);
    refuse_other_versions();
    forget();
    const struct names open = open_changes(OPEN_UNFINISHED);
    if (open.count)
        fail(EXIT_BUSY, "a change is open: %s", open.at[0]);
    if (is_there(state_place(), in_tx(tx, "about")) || is_there(state_place(), print("tx/%s", tx)))
        fail(EXIT_ERROR, "there is a change %s", tx);
}

enum outcome save_step(const struct step *step, struct state *state) {
    if (!step->known)
        return complain("this guard knows no access kind %s", step->kind_name);
    *state = (struct state){0};
    forgive();
    if (step->known->kind->save(step, state) != DONE || !state->count)
        return complain("%s", complaint("its state cannot be read, so it could not be put back"));
    forgive();
    return DONE;
}

static void save_steps(const char *tx, const struct plan *plan) {
    for (size_t i = 0; i < plan->count; i++) {
        const struct step *step = &plan->steps[i];
        struct granted granted;
        struct state state;
        if (grant(step, caller, &granted) != GRANTED || save_step(step, &state) != DONE)
            not_begun(tx, print("%s: %s", step->knob, complaint("it is not granted")));
        note("save %zu: %s", step->number, step->knob);
        if (write_state(tx, "saved", step->number, &state, false) != DONE)
            not_begun(tx, FULL_STATE);
        if (step->known->lasts && recover_at_boot() != DONE)
            not_begun(
                tx, print("what undoes it at boot cannot be put there: %s", complaint("is the disk full?")));
    }
}

void begin(const char *tx, const char *owner, int64_t deadline_s, struct plan *plan) {
    check_begin(tx, owner);
    have_reserve();
    note_about("begin", tx);
    const int made = mkdirat(state_place(), "tx", 0700),
              there = mkdirat(state_place(), print("tx/%s", tx), 0700);
    if (there != 0)
        fail(EXIT_ERROR, FULL_STATE);
    (void)made;
    if (write_about(tx, owner, caller, plan) != DONE || become(tx, "preparing", "") != DONE)
        not_begun(tx, FULL_STATE);
    note("begin: %zu steps for %s", plan->count, owner);
    keep_off_stuck(tx, plan);
    save_steps(tx, plan);
    if (set_deadline(tx, deadline_s) != DONE)
        not_begun(tx, FULL_RUN);
    if (watched() != DONE)
        not_begun(tx, UNWATCHED);
    if (seal(tx, plan) != DONE || become(tx, "prepared", "") != DONE)
        not_begun(tx, FULL_STATE);
}

/* --- apply --- */

/* Where somebody has removed /run/wulf, and the lock with it, others may have undone it meanwhile, and not
 * what was set after that. */
static _Noreturn void put_back_for(const char *tx, const char *why, const char *noted) {
    if (!is_exclusive()) {
        exclusively(true);
        if (become(tx, "applying", "") != DONE)
            forgive();
    }
    if (undo(tx, noted) != EXIT_DONE)
        finish(EXIT_STUCK);
    fail(EXIT_FAILED, "%s", why);
}

void require_open(const char *tx, const char *words) {
    const struct tx_state state = state_of(tx);
    if (!is_word_of(state.word, words))
        fail(EXIT_LATE, "%s is %s%s%s", tx, state.word, *state.why ? ": " : "", state.why);
    if (!is_late(tx))
        return;
    if (undo(tx, "not confirmed in time") != EXIT_DONE)
        finish(EXIT_STUCK);
    fail(EXIT_LATE, "%s came too late and was undone", tx);
}

void require_own(const char *tx) {
    const struct about about = about_of(tx);
    if (caller && (!about.known || about.uid != caller))
        fail(EXIT_BUSY, "%s is not a change of this user", tx);
}

bool device_is_another(const char *tx, const struct step *step, const char **why) {
    const struct about about = about_of(tx);
    const char *known = state_value(&about.devices, step->interface);
    *why = "its journal cannot be read";
    if (!known)
        return !about.known;
    *why = device_is_not(step->interface, known, is_same(about.boot, boot_id()));
    return *why != NULL;
}

const char *another_device(const char *tx, const struct plan *plan) {
    const char *why;
    for (size_t i = 0; i < plan->count; i++)
        if (device_is_another(tx, &plan->steps[i], &why))
            return why;
    return NULL;
}

/* What somebody has changed since it was saved is what has to come back. */
static enum outcome renew(const char *tx, const struct plan *plan, size_t from, size_t to) {
    bool renewed = false;
    for (size_t i = from; i < to; i++) {
        const struct step *step = &plan->steps[i];
        struct state now, saved = {0};
        if (save_step(step, &now) != DONE)
            put_back_for(tx, print("%s: %s", step->knob, complaint("")), "its state cannot be read any more");
        if (read_saved(tx, step->number, &saved) == DONE && state_identical(&now, &saved))
            continue;
        renewed = true;
        if (renew_saved(tx, step->number, &now) != DONE)
            return FAILED;
    }
    return renewed ? seal(tx, plan) : DONE;
}

/* What other steps have moved is not somebody else's: they were taken back before it, and it is as it was
 * left. */
static void take_what_is_ours(struct back *back) {
    struct back again = *back;
    struct state now, left = {0};
    if (!back->left.count || save_step(back->step, &now) != DONE)
        return;
    back_decide(&again, &now);
    for (size_t i = 0; i < back->left.count; i++) {
        const struct item *item = &back->left.at[i];
        const char *before = state_value(&again.items, item->key);
        if (before)
            state_add(&back->items, item->key, before);
        else
            state_add_flagged(&left, item->key, item->value, item->flags);
    }
    back->left = left;
}

/* A value @TX/saved.N... is what these changes have changed, as it was before the first. */
static enum outcome put_former(const char *tx, const struct plan *plan, const struct step *step) {
    struct back back = {.step = step, .plan = plan};
    struct state now = {0};
    if (former_states(plan, step, &back.before, &back.after, &back.after_known) != DONE ||
        read_saved(tx, step->number, &now) != DONE)
        return complain("what was before %s cannot be read", step->knob);
    if (caller && is_same(step->kind_name, "stored") && stored_within_scope(step, &back.before) != DONE)
        return FAILED;
    back_decide(&back, &now);
    take_what_is_ours(&back);
    const enum outcome outcome = put_back(&back) == DONE || rest_is_gone(&back) ? DONE : FAILED;
    back_say_left(&back);
    return outcome;
}

enum outcome put_step(const char *tx, const struct plan *plan, const struct step *step) {
    struct granted granted;
    if (grant(step, caller, &granted) != GRANTED || granted.mark != GRANTED)
        return complain("%s", complaint("it is not granted"));
    forgive();
    if (*step->value == '@')
        return put_former(tx, plan, granted.step);
    if (granted.step->known->kind->put(granted.step) != DONE)
        return complain("%s", complaint("it was refused"));
    forgive();
    return DONE;
}

void settle_units(const struct plan *plan) {
    bool reload = false;
    for (size_t i = 0; i < plan->count; i++)
        reload = reload || starts_with(plan->steps[i].target, UNITS);
    if (!reload || access("/run/systemd/system", F_OK) != 0)
        return;
    if (RUN("systemctl", "daemon-reload") != DONE)
        forgive();
    for (size_t i = 0; i < plan->count; i++) {
        const char *target = plan->steps[i].target, *name = strrchr(target, '/');
        /* What one without its file failed with would keep the system degraded. */
        if (starts_with(target, UNITS) && access(target, F_OK) != 0 &&
            RUN("systemctl", "reset-failed", name + 1) != DONE)
            forgive();
    }
}

void save_after(const char *tx, const struct step *step) {
    struct state state, known = {0};
    const bool is_read = save_step(step, &state) == DONE;
    if (is_read && read_after(tx, step->number, &known) && state_identical(&state, &known))
        return;
    if (!is_read || write_state(tx, "after", step->number, &state, false) != DONE)
        remove_own(state_place(), in_tx(tx, print("after.%zu", step->number)));
    forgive();
}

bool is_apart(const struct plan *plan, size_t i) {
    for (size_t j = 0; j < plan->count; j++)
        if (is_word_of(plan->steps[j].kind_name, "tuned service module"))
            return false;
    return is_word_of(plan->steps[i].kind_name, "sysctl stored");
}

const char *value_now(const struct step *step) {
    struct text value = {0};
    if (!step->known)
        return "not known";
    forgive();
    if (kind_get(step->known->kind, step, &value) != DONE)
        return one_line(complaint("not known"), 300);
    return one_line(text_string(&value), 4000);
}

/* What the kernel or driver has made of the values, all of them being set. */
static void read_back(const char *tx, const struct plan *plan) {
    struct text values = {0};
    for (size_t i = 0; i < plan->count; i++) {
        const struct step *step = &plan->steps[i];
        const char *number = print("%zu", step->number), *value = value_now(step);
        SAY("step", number, step->knob, value);
        text_print(&values, "%s\t%s\n", number, value);
    }
    /* What is not known any more of that is no reason to put everything back. */
    if (store(state_place(), in_tx(tx, "values"), text_string(&values), values.size, false) != DONE)
        forgive();
}

/* The content of a file is no word for a log that others may see. */
static const char *shown(const struct step *step) {
    return starts_with(step->value, "file:") ? "file" : keep(step->value, strnlen(step->value, SHOWN));
}

static void apply_step(const char *tx, const struct plan *plan, size_t i) {
    const struct step *step = &plan->steps[i];
    const char *value = shown(step);
    if (i > 0 && is_apart(plan, i) && renew(tx, plan, i, i + 1) != DONE)
        put_back_for(tx, FULL_STATE, FULL_STATE);
    note("put %zu: %s=%s", step->number, step->knob, value);
    if (put_step(tx, plan, step) != DONE) {
        const char *refused =
            print("%s=%s: %s", step->knob, value, one_line(complaint("it was refused"), 300));
        put_back_for(tx, refused, print("step %zu, %s", step->number, refused));
    }
    if (is_apart(plan, i))
        save_after(tx, step);
}

static void all_are_made(const char *tx, const struct plan *plan) {
    struct text steps = {0};
    for (size_t i = 0; i < plan->count; i++)
        text_print(&steps, "%s%zu", i ? "," : "", plan->steps[i].number);
    made_are(tx, text_string(&steps));
}

void apply(const char *tx) {
    struct plan plan;
    note_about("apply", tx);
    require_open(tx, "prepared");
    require_own(tx);
    const struct soundness soundness = soundness_of(tx);
    if (!is_sound(&soundness) || plan_of(tx, &plan) != DONE)
        not_begun(tx, print("its journal was damaged before anything was changed: %s", soundness.damaged));
    const char *another = another_device(tx, &plan);
    if (another)
        put_back_for(tx, another, another);
    if (renew(tx, &plan, 0, plan.count) != DONE)
        not_begun(tx, FULL_STATE);
    if (become(tx, "applying", "") != DONE)
        put_back_for(tx, FULL_STATE, FULL_STATE);
    for (size_t i = 0; i < plan.count; i++)
        apply_step(tx, &plan, i);
    settle_units(&plan);
    for (size_t i = 0; i < plan.count; i++)
        if (!is_apart(&plan, i))
            save_after(tx, &plan.steps[i]);
    read_back(tx, &plan);
    all_are_made(tx, &plan);
    if (!is_exclusive())
        put_back_for(tx, UNLOCKED, UNLOCKED);
    if (become(tx, "applied", "") != DONE)
        put_back_for(tx, FULL_STATE, FULL_STATE);
}

void swap(const char *old, const char *tx, const char *owner, int64_t deadline_s, struct plan *plan) {
    require_owner(owner, caller);
    if (!is_same(old, "-")) {
        require_own(old);
        swaps = true;
        if (undo(old, "the next trial") != EXIT_DONE)
            finish(EXIT_STUCK);
        swaps = false;
    }
    begin(tx, owner, deadline_s, plan);
    apply(tx);
}

/* --- extend and confirm --- */

void extend(const char *tx, int64_t deadline_s) {
    note_about("extend", tx);
    require_open(tx, "prepared applied");
    require_own(tx);
    /* While one is started the deadline must not pass: it came in time. */
    if (set_deadline(tx, deadline_s < 60 ? 60 : deadline_s) != DONE || watched() != DONE)
        put_back_for(tx, UNWATCHED, UNWATCHED);
    if (set_deadline(tx, deadline_s) != DONE)
        put_back_for(tx, FULL_RUN, FULL_RUN);
    look_again();
}

/* What was not worth a word on the disk before. */
static enum outcome sync_change(const char *tx) {
    const struct names names = names_in(state_place(), print("tx/%s", tx));
    for (size_t i = 0; i < names.count; i++)
        if (sync_file(state_place(), in_tx(tx, names.at[i])) != DONE)
            return FAILED;
    return sync_directory(state_place(), print("tx/%s", tx));
}

void confirm(const char *tx) {
    note_about("confirm", tx);
    if (is_same(state_of(tx).word, "confirmed"))
        return;
    require_open(tx, "applied");
    require_own(tx);
    const struct soundness soundness = soundness_of(tx);
    if (!is_sound(&soundness)) {
        const char *why = print("its journal is damaged: %s", soundness.damaged);
        put_back_for(tx, why, why);
    }
    if (set_deadline(tx, 60) != DONE || watched() != DONE)
        put_back_for(tx, UNWATCHED, UNWATCHED);
    if (sync_change(tx) != DONE || become(tx, "confirmed", "") != DONE)
        put_back_for(tx, FULL_STATE, FULL_STATE);
    close_change(tx);
    condense();
}

void close_change(const char *tx) {
    end_alternation(tx);
    tidy();
    have_reserve();
    if (!swaps)
        look_again();
}
