#include "guard/change.h"

#include "guard/alternation.h"
#include "guard/answer.h"
#include "guard/back.h"
#include "guard/device.h"
#include "guard/history.h"
#include "guard/kind.h"
#include "guard/kind/made.h"
#include "guard/kind/module.h"
#include "guard/lock.h"
#include "guard/recover.h"
#include "guard/tool.h"
#include "guard/watch.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FULL_STATE "cannot write to " STATE_PLACE ": is the disk full?"
#define FULL_RUN "cannot write to " RUN_PLACE ": is it full?"
#define UNWATCHED "the watcher does not start, or cannot write to " RUN_PLACE
#define UNLOCKED "somebody has removed " RUN_PLACE " meanwhile"
#define UNITS "/etc/systemd/system/"

enum { ROUNDS = 3, SHOWN = 60 };

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

static enum outcome save_step(const struct step *step, struct state *state) {
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

static bool device_is_another(const char *tx, const struct step *step, const char **why) {
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
        if (write_state(tx, "saved", step->number, &now, true) != DONE)
            return FAILED;
    }
    return renewed ? seal(tx, plan) : DONE;
}

/* A value @TX/saved.N... is what these changes have changed, as it was before the first. */
static enum outcome put_former(const char *tx, const struct step *step) {
    struct back back = {.step = step};
    struct state now = {0};
    if (former_states(step->value + 1, step, &back.before, &back.after, &back.after_known) != DONE ||
        read_saved(tx, step->number, &now) != DONE)
        return complain("what was before %s cannot be read", step->knob);
    if (caller && is_same(step->kind_name, "stored") && stored_within_scope(step, &back.before) != DONE)
        return FAILED;
    back_decide(&back, &now);
    const enum outcome outcome = put_back(&back) == DONE || rest_is_gone(&back) ? DONE : FAILED;
    back_say_left(&back);
    return outcome;
}

enum outcome put_step(const char *tx, const struct step *step) {
    struct granted granted;
    if (grant(step, caller, &granted) != GRANTED || granted.mark != GRANTED)
        return complain("%s", complaint("it is not granted"));
    forgive();
    if (*step->value == '@')
        return put_former(tx, granted.step);
    if (granted.step->known->kind->put(granted.step) != DONE)
        return complain("%s", complaint("it was refused"));
    forgive();
    return DONE;
}

/* Once for all steps: systemd reads its files anew. */
static void settle_units(const struct plan *plan) {
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

/* Whether no other step moves what this one sets: then what somebody sets while others are at work, which may
 * take long, is told from ours. */
static bool is_apart(const struct plan *plan, size_t i) {
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
    if (put_step(tx, step) != DONE) {
        const char *refused =
            print("%s=%s: %s", step->knob, value, one_line(complaint("it was refused"), 300));
        put_back_for(tx, refused, print("step %zu, %s", step->number, refused));
    }
    if (is_apart(plan, i))
        save_after(tx, step);
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

/* --- undo --- */

struct undoing {
    const char *tx;
    struct plan plan;
    struct back *backs; /* as the steps are, by their place in the plan */
    bool *skipped;
    struct text lost; /* what cannot be put back for good: said after each round */
    bool at_boot;
};

static int by_rank(const void *one, const void *other) {
    const struct step *left = *(const struct step *const *)one, *right = *(const struct step *const *)other;
    const int ranks[2] = {rank_of(left->knob, left->kind_name), rank_of(right->knob, right->kind_name)};
    if (ranks[0] != ranks[1])
        return ranks[0] < ranks[1] ? -1 : 1;
    return left->number > right->number ? -1 : 1;
}

const struct step **undo_order(const struct plan *plan) {
    const struct step **order = take((plan->count + 1) * sizeof *order);
    for (size_t i = 0; i < plan->count; i++)
        order[i] = &plan->steps[i];
    if (plan->count)
        qsort(order, plan->count, sizeof *order, by_rank);
    return order;
}

static void cannot(struct text *stuck, const struct step *step, const char *why) {
    text_print(stuck, " %s (%s);", step->knob, one_line(why, 300));
}

static void prepare_step(struct undoing *undoing, size_t i, const struct soundness *soundness) {
    const struct step *step = &undoing->plan.steps[i];
    const char *why;
    undoing->skipped[i] = true;
    if (!step->known) {
        cannot(&undoing->lost, step, "this guard knows no such kind of access");
    } else if (undoing->at_boot && !step->known->lasts) {
        return; /* it went with that boot */
    } else if (is_damaged(soundness, step->number) ||
               back_of_step(undoing->tx, step, &undoing->backs[i]) != DONE) {
        forgive();
        cannot(&undoing->lost, step, "what was before it is damaged in the journal");
    } else if (!kind_takes_away(step->known->kind, &undoing->backs[i].before) &&
               device_is_another(undoing->tx, step, &why)) {
        cannot(&undoing->lost, step, why);
    } else {
        undoing->backs[i].at_boot = undoing->at_boot;
        undoing->skipped[i] = false;
    }
}

/* What was found to be somebody else's when an undo began, should it be ended and go on. */
static bool read_left(const char *tx, struct state *left) {
    struct text text = {0};
    const bool known =
        read_own(state_place(), in_tx(tx, "left"), &text) == DONE && state_read(&text, left) == DONE;
    forgive();
    return known;
}

static void only_known_left(struct back *back, const struct state *known) {
    struct state left = {0};
    for (size_t i = 0; i < back->left.count; i++) {
        const struct item *item = &back->left.at[i];
        const char *before = state_value(&back->before, item->key),
                   *made = state_value(&back->after, item->key);
        const bool not_ours = before && made && is_same(before, made);
        if (not_ours || state_value(known, print("%zu %s", back->step->number, item->key)))
            state_add(&left, item->key, item->value);
        else if (before)
            state_add(&back->items, item->key, before);
    }
    back->left = left;
}

static void decide(struct undoing *undoing, bool goes_on) {
    struct state known = {0}, left = {0};
    goes_on = goes_on && read_left(undoing->tx, &known);
    for (size_t i = 0; i < undoing->plan.count; i++) {
        struct back *back = &undoing->backs[i];
        if (undoing->skipped[i])
            continue;
        back_look(back);
        if (goes_on)
            only_known_left(back, &known);
        for (size_t j = 0; j < back->left.count; j++)
            state_add(&left, print("%zu %s", back->step->number, back->left.at[j].key),
                      back->left.at[j].value);
    }
    struct text text = {0};
    state_write(&left, &text);
    if (!goes_on && (undoing->plan.count > 1 || left.count) &&
        store(state_place(), in_tx(undoing->tx, "left"), text.at, text.size, false) != DONE)
        forgive();
}

/* One round; whether it has changed anything. */
static bool put_round(struct undoing *undoing, const struct step **order, struct text *stuck) {
    bool moved = false;
    text_word(stuck, text_string(&undoing->lost));
    for (size_t i = 0; i < undoing->plan.count; i++) {
        const size_t at = order[i]->number - 1;
        struct back *back = &undoing->backs[at];
        if (undoing->skipped[at] || is_back(back))
            continue;
        forgive();
        moved = true;
        note("restore %zu: %s", order[i]->number, order[i]->knob);
        if (put_back(back) != DONE)
            cannot(stuck, order[i], complaint("it is not as before"));
    }
    return moved;
}

static const char *put_rounds(struct undoing *undoing) {
    const struct step **order = undo_order(&undoing->plan);
    const char *before = NULL;
    struct text stuck = {0};
    /* Again as long as that changes something: what was put back later may have moved what was put back
     * before. */
    for (int round = 0; round < ROUNDS; round++) {
        stuck = (struct text){0};
        if (!put_round(undoing, order, &stuck))
            break;
        if ((stuck.size && before && is_same(stuck.at, before)) || (!stuck.size && undoing->plan.count == 1))
            break;
        before = keep_text(text_string(&stuck));
    }
    for (size_t i = 0; i < undoing->plan.count; i++)
        if (!undoing->skipped[i])
            back_say_left(&undoing->backs[i]);
    return text_string(&stuck);
}

/* Its guard was ended, or a tool refused something, in the middle: what is there now is what it has made, or
 * what was not there before would stay. Of steps that are recorded one by one it was at the first that is
 * not. */
static void record_half_made(const char *tx, const struct plan *plan) {
    bool was_at_one = false;
    for (size_t i = 0; i < plan->count; i++) {
        const struct step *step = &plan->steps[i];
        struct state known = {0};
        if (!step->known || read_after(tx, step->number, &known) || (is_apart(plan, i) && was_at_one))
            continue;
        was_at_one = was_at_one || is_apart(plan, i);
        save_after(tx, step);
    }
}

/* All steps: why not all could be put back; "" when all could. */
static const char *put_all_back(const char *tx, const struct tx_state *state, const char *why) {
    struct undoing undoing = {.tx = tx};
    const struct soundness soundness = soundness_of(tx);
    if (soundness.untrusted)
        return soundness.untrusted;
    if (state->lost) /* not known to be open but by its mark; what was put down as stuck is tried again */
        return state->why;
    if (plan_of(tx, &undoing.plan) != DONE) {
        forgive();
        return "its journal is damaged: plan";
    }
    const struct about about = about_of(tx);
    if (!about.known)
        return "its journal cannot be read";
    undoing.at_boot = !is_same(about.boot, boot_id());
    if (is_same(state->word, "applying"))
        record_half_made(tx, &undoing.plan);
    undoing.backs = take((undoing.plan.count + 1) * sizeof *undoing.backs);
    undoing.skipped = take(undoing.plan.count + 1);
    if (modules_back() != DONE)
        text_print(&undoing.lost, " %s;", complaint("a driver cannot be loaded again"));
    for (size_t i = 0; i < undoing.plan.count; i++)
        prepare_step(&undoing, i, &soundness);
    decide(&undoing, is_same(state->word, "undoing"));
    if (become(tx, "undoing", why) != DONE)
        forgive();
    const char *stuck = put_rounds(&undoing);
    settle_units(&undoing.plan);
    return stuck;
}

/* Says so, and when it is tried again. */
static int stay_stuck(const char *tx, const char *stuck, bool lost) {
    /* What has neither a mark nor a state may be confirmed: only a person can tell. */
    const bool marked =
        is_there(state_place(), print("open.%s", tx)) || is_there(run_place(), print("deadline.%s", tx));
    if ((!lost || marked) && is_there(state_place(), print("tx/%s", tx)) &&
        become(tx, "stuck", stuck) != DONE)
        forgive();
    retry_later(tx);
    SAY("error", print("not put back: %s", stuck));
    return EXIT_STUCK;
}

int undo(const char *tx, const char *why) {
    note_about("undo", tx);
    const struct tx_state state = state_of(tx);
    const char *stuck = "";
    if (is_word_of(state.word, "undone abandoned none"))
        return EXIT_DONE;
    if (is_word_of(state.word, "confirmed other"))
        fail(EXIT_LATE, "%s is %s: roll it back", tx, is_same(state.word, "other") ? state.why : "confirmed");
    if (!is_word_of(state.word, "preparing prepared")) /* nothing was changed yet in these */
        stuck = put_all_back(tx, &state, why);
    if (!*stuck && become(tx, "undone", why) != DONE)
        stuck = print(" %s;", FULL_STATE);
    if (*stuck)
        return stay_stuck(tx, stuck, state.lost);
    close_change(tx);
    return EXIT_DONE;
}
