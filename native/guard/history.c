#include "guard/history.h"

#include "guard/answer.h"
#include "guard/back.h"
#include "guard/change.h"
#include "guard/device.h"
#include "guard/kind.h"
#include "guard/recover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HISTORY "history"
#define WHAT "what\t"
#define BEFORE "before\t"
#define AFTER "after\t"
#define DEVICE "device\t"

enum { KEPT_CHANGES = 50, KEPT_MORE = 10, AT_ONCE = 100, ARCHIVE_BYTES = 4194304 };

static struct bytes bytes_of(const char *text) { return (struct bytes){text, strlen(text)}; }
static char *kept(struct bytes bytes) { return keep(bytes.at, bytes.size); }

/* --- what is condensed --- */

static enum outcome read_history(struct state *history) {
    struct text text = {0};
    if (!is_there(state_place(), HISTORY)) {
        *history = (struct state){0};
        return is_there(state_place(), "archive") ? FAILED : DONE;
    }
    if (read_own(state_place(), HISTORY, &text) != DONE || state_read(&text, history) != DONE) {
        *history = (struct state){0};
        return FAILED;
    }
    return DONE;
}

const char *damaged_history(void) {
    struct state history = {0};
    const bool good = read_history(&history) == DONE;
    forgive();
    if (good)
        return NULL;
    return print("%s/%s is %s", STATE_PLACE, HISTORY, is_there(state_place(), HISTORY) ? "damaged" : "gone");
}

uint64_t history_through(void) {
    struct state history = {0};
    uint64_t number = 0;
    const char *said = read_history(&history) == DONE ? state_value(&history, "through") : NULL;
    forgive();
    return said && bytes_number(bytes_of(said), UINT32_MAX, &number) ? number : 0;
}

uint64_t last_number(void) {
    const struct tx_rows rows = journal();
    uint64_t last = history_through();
    for (size_t i = 0; i < rows.count; i++)
        if (rows.at[i].number > last)
            last = rows.at[i].number;
    return last;
}

static char *thing_of(const struct step *step) {
    return print("%s\t%s\t%s", step->kind_name, step->interface, step->target);
}

static void read_states(const struct state *history, const char *thing, struct state *before,
                        struct state *after) {
    const char *texts[2] = {state_value(history, print(BEFORE "%s", thing)),
                            state_value(history, print(AFTER "%s", thing))};
    struct state *const states[2] = {before, after};
    for (size_t i = 0; i < 2; i++) {
        struct text text = {0};
        *states[i] = (struct state){0};
        text_word(&text, texts[i] ? texts[i] : "");
        if (state_read(&text, states[i]) != DONE)
            *states[i] = (struct state){0};
    }
}

static void add_state(struct state *history, const char *key, const struct state *state) {
    struct text text = {0};
    state_write(state, &text);
    state_add(history, key, text.at);
}

static enum outcome write_history(const struct all_touched *all, uint64_t through) {
    struct state history = {0};
    struct text text = {0};
    state_add(&history, "through", print("%llu", (unsigned long long)through));
    for (size_t i = 0; i < all->count; i++) {
        const struct touched *one = &all->at[i];
        const char *thing = thing_of(&one->step);
        if (one->broken)
            return complain("%s", one->broken);
        state_add(&history, print(WHAT "%s", thing),
                  print("%s\t%zu\t%s\t%s\t%s", one->tx, one->step.number, one->step.knob, one->step.value,
                        one->read_back));
        add_state(&history, print(BEFORE "%s", thing), &one->before);
        add_state(&history, print(AFTER "%s", thing), &one->after);
        if (*one->device)
            state_add(&history, print(DEVICE "%s", thing), print("%s %s", one->boot, one->device));
    }
    state_write(&history, &text);
    return store(state_place(), HISTORY, text.at, text.size, true);
}

/* --- of which device --- */

/* The states of a device say nothing of the one that has its name after it. */
static void follow_device(struct touched *touched, const char *tx, const struct step *step) {
    const struct about about = about_of(tx);
    const char *device = state_value(&about.devices, step->interface);
    const bool by_name = step->known && step->known->kind->nothing;
    if (!device)
        return;
    if (*touched->device && !by_name &&
        !device_may_be_same(touched->device, device, is_same(touched->boot, about.boot))) {
        touched->references = "";
        touched->broken = NULL;
    }
    touched->boot = about.boot;
    touched->device = device;
}

/* Why nobody can set it any more: there is nothing of it, or what has its name is another device. */
static const char *why_gone(const struct touched *touched) {
    const struct known_kind *known = touched->step.known;
    if (!known)
        return NULL;
    if (known->kind->is_absent && known->kind->is_absent(&touched->step))
        return "it is not there any more";
    if (!*touched->device || kind_takes_away(known->kind, &touched->before))
        return NULL;
    return device_is_not(touched->step.interface, touched->device, is_same(touched->boot, boot_id()));
}

/* --- what was touched --- */

static struct touched *touched_at(struct all_touched *all, const struct step *step, size_t *room) {
    for (size_t i = 0; i < all->count; i++)
        if (is_same(all->at[i].step.kind_name, step->kind_name) &&
            is_same(all->at[i].step.interface, step->interface) &&
            is_same(all->at[i].step.target, step->target))
            return &all->at[i];
    if (all->count == *room) {
        *room = *room ? 2 * *room : 32;
        struct touched *more = take(*room * sizeof *more);
        if (all->count)
            memcpy(more, all->at, all->count * sizeof *more);
        all->at = more;
    }
    all->at[all->count] = (struct touched){.references = "", .read_back = "", .boot = "", .device = ""};
    return &all->at[all->count++];
}

/* "KIND\tINTERFACE\tTARGET" and "TX\tN\tKNOB\tVALUE\tREAD BACK". */
static void add_condensed(struct all_touched *all, size_t *room, const struct state *history,
                          const struct item *item) {
    struct bytes thing = bytes_of(item->key + strlen(WHAT)), last = bytes_of(item->value), fields[6];
    if (!cut(&thing, '\t', &fields[0]) || !cut(&thing, '\t', &fields[1]) || !cut(&last, '\t', &fields[2]) ||
        !cut(&last, '\t', &fields[3]) || !cut(&last, '\t', &fields[4]) || !cut(&last, '\t', &fields[5]))
        return;
    const struct step step = {.kind_name = kept(fields[0]),
                              .interface = kept(fields[1]),
                              .target = kept(thing),
                              .knob = kept(fields[4]),
                              .value = kept(fields[5]),
                              .known = kind_named(fields[0])};
    struct touched *touched = touched_at(all, &step, room);
    touched->step = step;
    touched->tx = kept(fields[2]);
    touched->read_back = kept(last);
    touched->references = HISTORY;
    touched->after_known = true;
    const char *device = state_value(history, print(DEVICE "%s", item->key + strlen(WHAT)));
    struct bytes rest = bytes_of(device ? device : ""), boot;
    if (cut(&rest, ' ', &boot)) {
        touched->boot = kept(boot);
        touched->device = kept(rest);
    }
    read_states(history, item->key + strlen(WHAT), &touched->before, &touched->after);
}

static const char *read_back_of(const char *tx, size_t number) {
    struct text text = {0};
    const bool has = read_own(state_place(), print("tx/%s/values", tx), &text) == DONE;
    forgive();
    struct bytes rest = {text_string(&text), has ? text.size : 0}, line, word;
    while (next_line(&rest, &line))
        if (cut(&line, '\t', &word) && bytes_are(word, print("%zu", number)))
            return kept(line);
    return "";
}

static const char *why_broken(const char *tx, const struct step *step, const struct soundness *soundness) {
    if (!is_damaged(soundness, step->number) && !soundness->untrusted)
        return NULL;
    return print("%s: what was before %s is damaged (%s/tx/%s/saved.%zu); 'wulf rollback --abandon %s' "
                 "leaves its values as "
                 "they are",
                 tx, step->knob, STATE_PLACE, tx, step->number, tx);
}

static bool (*removes_of(const struct step *step))(const char *key) {
    return step->known ? step->known->kind->removes : NULL;
}

static void add_step(struct all_touched *all, size_t *room, const char *tx, const struct step *step,
                     const struct soundness *soundness) {
    struct touched *touched = touched_at(all, step, room);
    struct state before = {0}, after = {0};
    const char *broken = why_broken(tx, step, soundness);
    if (!broken && read_saved(tx, step->number, &before) != DONE)
        broken = print("%s: what was before %s cannot be read", tx, step->knob);
    forgive();
    const bool known = read_after(tx, step->number, &after);
    follow_device(touched, tx, step);
    touched->after_known = known && (touched->after_known || !*touched->references);
    if (!*touched->references) {
        touched->before = before;
        touched->after = after;
    } else if (!broken) {
        states_fold(&touched->before, &touched->after, removes_of(step), &before, &after);
    }
    touched->references =
        print("%s%s%s/saved.%zu", touched->references, *touched->references ? " " : "", tx, step->number);
    touched->step = *step;
    touched->tx = tx;
    touched->read_back = read_back_of(tx, step->number);
    touched->broken = touched->broken ? touched->broken : broken;
}

static bool is_to_original(const char *tx) {
    struct text text = {0};
    const bool has = read_own(state_place(), print("tx/%s/rollback", tx), &text) == DONE;
    forgive();
    return has && starts_with(text_string(&text), "original\n");
}

/* The first one after the last way back to the original state. */
static size_t after_original(struct names changes) {
    size_t from = 0;
    for (size_t i = 0; i < changes.count; i++)
        if (is_to_original(changes.at[i]))
            from = i + 1;
    return from;
}

/* The confirmed changes that are kept one by one, the oldest first. */
static struct names confirmed(void) {
    const struct tx_rows rows = journal();
    const uint64_t through = history_through();
    struct names names = {.at = take((rows.count + 1) * sizeof(char *))};
    for (size_t i = 0; i < rows.count; i++)
        if (is_same(rows.at[i].state.word, "confirmed") && rows.at[i].number > through)
            names.at[names.count++] = keep_text(rows.at[i].name);
    return names;
}

static struct all_touched sum_up(struct names changes, bool with_history) {
    struct all_touched all = {0};
    struct state history = {0};
    size_t room = 0;
    const size_t from = after_original(changes);
    if (with_history && from == 0 && read_history(&history) == DONE)
        for (size_t i = 0; i < history.count; i++)
            if (starts_with(history.at[i].key, WHAT))
                add_condensed(&all, &room, &history, &history.at[i]);
    for (size_t i = from; i < changes.count; i++) {
        struct plan plan;
        const struct soundness soundness = soundness_of(changes.at[i]);
        if (plan_of(changes.at[i], &plan) != DONE) {
            forgive();
            if (what_of(changes.at[i], &plan) != DONE)
                continue;
        }
        for (size_t j = 0; j < plan.count; j++)
            add_step(&all, &room, changes.at[i], &plan.steps[j], &soundness);
    }
    forgive();
    return all;
}

struct all_touched touched_since(const char *to) {
    const struct names names = confirmed();
    if (is_same(to, "original"))
        return sum_up(names, true);
    for (size_t i = 0; i < names.count; i++)
        if (is_same(names.at[i], to))
            return sum_up((struct names){.at = names.at + i, .count = names.count - i}, false);
    return (struct all_touched){0};
}

/* --- back --- */

static enum outcome add_former(struct bytes word, const struct step *step, struct state *before,
                               struct state *after, bool *after_known) {
    struct bytes tx;
    uint64_t number;
    struct state history = {0};
    *before = *after = (struct state){0};
    if (bytes_are(word, HISTORY)) {
        if (read_history(&history) != DONE)
            return FAILED;
        read_states(&history, thing_of(step), before, after);
        return before->count ? DONE : FAILED;
    }
    if (!cut(&word, '/', &tx) || !is_change(tx) || !bytes_begin(word, "saved.") ||
        !bytes_number(bytes_from(word, strlen("saved.")), 65535, &number))
        return FAILED;
    if (read_saved(kept(tx), (size_t)number, before) != DONE)
        return FAILED;
    *after_known = read_after(kept(tx), (size_t)number, after) && *after_known;
    return DONE;
}

/* What a reference speaks of. */
struct former {
    const struct step *step;
    struct bytes word;
    uint64_t number; /* of the change; 0 for the history */
};

struct formers {
    struct former *at;
    size_t count;
};

static int by_number(const void *one, const void *other) {
    const struct former *left = one, *right = other;
    return left->number < right->number ? -1 : left->number > right->number;
}

/* A change saves the same of all steps that have one state. FAILED where its place among the others is not
 * known. */
static enum outcome add_references(struct formers *formers, const struct step *step) {
    struct bytes rest = bytes_of(step->value + 1), word;
    while (next_word(&rest, &word)) {
        struct bytes name = word, tx;
        uint64_t number = 0;
        bool known = false;
        if (!bytes_are(word, HISTORY)) {
            if (!cut(&name, '/', &tx) || !is_change(tx))
                return FAILED;
            const struct about about = about_of(kept(tx));
            if (!about.known)
                return FAILED;
            number = about.number;
        }
        for (size_t i = 0; i < formers->count; i++)
            known = known || formers->at[i].number == number;
        if (!known)
            formers->at[formers->count++] = (struct former){step, word, number};
    }
    return DONE;
}

/* In the order of the changes, also of those that have set another part of the same state. */
static enum outcome find_formers(const struct plan *plan, const struct step *step, struct formers *formers) {
    size_t room = 1;
    for (size_t i = 0; i < plan->count; i++)
        room += strlen(plan->steps[i].value);
    formers->at = take(room * sizeof *formers->at);
    enum outcome outcome = add_references(formers, step);
    for (size_t i = 0; i < plan->count && outcome == DONE; i++)
        if (kind_shares(step, &plan->steps[i]))
            outcome = add_references(formers, &plan->steps[i]);
    qsort(formers->at, formers->count, sizeof *formers->at, by_number);
    return outcome;
}

enum outcome former_states(const struct plan *plan, const struct step *step, struct state *before,
                           struct state *after, bool *after_known) {
    struct formers formers = {0};
    *after_known = true;
    if (find_formers(plan, step, &formers) != DONE)
        return FAILED;
    for (size_t i = 0; i < formers.count; i++) {
        struct state next_before, next_after;
        if (add_former(formers.at[i].word, formers.at[i].step, &next_before, &next_after, after_known) !=
            DONE)
            return FAILED;
        if (i == 0) {
            *before = next_before;
            *after = next_after;
        } else {
            states_fold(before, after, removes_of(step), &next_before, &next_after);
        }
    }
    return formers.count ? DONE : FAILED;
}

static int by_rank(const void *one, const void *other) {
    const struct touched *left = *(const struct touched *const *)one,
                         *right = *(const struct touched *const *)other;
    const int ranks[2] = {back_rank_of(left->step.knob, left->step.kind_name),
                          back_rank_of(right->step.knob, right->step.kind_name)};
    if (ranks[0] != ranks[1])
        return ranks[0] < ranks[1] ? -1 : 1;
    return left > right ? -1 : 1;
}

static const char *way_back(const struct all_touched *all) {
    const struct touched **order = take(all->count * sizeof *order);
    struct text text = {0};
    for (size_t i = 0; i < all->count; i++)
        order[i] = &all->at[i];
    qsort(order, all->count, sizeof *order, by_rank);
    for (size_t i = 0; i < all->count; i++)
        if (!order[i]->is_left)
            text_print(&text, "%s\t%s\t@%s\n", order[i]->step.knob, thing_of(&order[i]->step),
                       order[i]->references);
    return text_string(&text);
}

/* It must not keep the rest from going back. */
static void leave_what_is_gone(const struct all_touched *all) {
    for (size_t i = 0; i < all->count; i++) {
        struct touched *touched = &all->at[i];
        const char *why = why_gone(touched);
        touched->is_left = why != NULL;
        if (why)
            say_gone(&touched->step, why);
        else if (touched->broken)
            fail(EXIT_ERROR, "%s", touched->broken);
    }
}

/* Nothing of these changes is there any more: they are over, or their settings would be missed for ever. */
static enum outcome give_up_since(const char *to) {
    const struct names names = confirmed();
    const struct all_touched none = {0};
    const bool all = is_same(to, "original");
    size_t from = all ? after_original(names) : 0;
    while (!all && from < names.count && !is_same(names.at[from], to))
        from++;
    if (all && from == 0 && is_there(state_place(), HISTORY) &&
        write_history(&none, history_through()) != DONE)
        return FAILED;
    for (; from < names.count; from++)
        if (give_up_journal(names.at[from]) != DONE)
            return FAILED;
    return DONE;
}

void rollback(const char *tx, const char *owner, int64_t deadline_s, const char *to) {
    recover(true); /* who asks for this has mended what kept it from being put back */
    const char *damaged = damaged_history();
    if (is_same(to, "original") && damaged)
        fail(EXIT_ERROR, "%s: what was before the changes in it is not known", damaged);
    if (!is_same(to, "original") && !is_there(state_place(), print("tx/%s", to)))
        fail(EXIT_ERROR, "there is no change %s here, or it is older than the last %d", to, KEPT_CHANGES);
    const struct all_touched all = touched_since(to);
    leave_what_is_gone(&all);
    const char *lines = way_back(&all);
    if (!*lines) {
        /* Other users' changes may be among them. */
        if (all.count && !caller && give_up_since(to) != DONE)
            fail(EXIT_ERROR, "cannot write to %s: is the disk full?", STATE_PLACE);
        say_line("nothing");
        return;
    }
    struct plan plan;
    if (plan_read(bytes_of(lines), &plan) != DONE)
        fail(EXIT_ERROR, "what was done is more than one change can put back: roll back to a later one");
    begin(tx, owner, deadline_s, &plan);
    if (store_or_spare(state_place(), print("tx/%s/rollback", tx), print("%s\n", to), true) != DONE)
        not_begun(tx, "cannot write to " STATE_PLACE ": is the disk full?");
}

/* --- kept small --- */

void forget(void) { /* the log keeps what those were that are not kept */
    const struct tx_rows rows = journal();
    size_t kept_changes = 0;
    for (size_t i = rows.count; i-- > 0;)
        if (is_word_of(rows.at[i].state.word, "undone abandoned") && ++kept_changes >= KEPT_CHANGES)
            discard(rows.at[i].name);
}

static void append_archive(const char *tx) {
    const struct names names = names_in(state_place(), print("tx/%s", tx));
    struct text text = {0};
    for (size_t i = 0; i < names.count; i++) {
        struct text content = {0};
        if (read_own(state_place(), print("tx/%s/%s", tx, names.at[i]), &content) == DONE)
            text_print(&text, "== %s/%s\n%s", tx, names.at[i], text_string(&content));
    }
    forgive();
    const int file = open_own(state_place(), "archive", O_WRONLY | O_CREAT | O_APPEND);
    if (file >= 0 && write(file, text_string(&text), text.size) < 0)
        errno = 0; /* nothing reads it */
    if (file >= 0)
        close(file);
}

static void rotate_archive(void) {
    struct stat about;
    if (fstatat(state_place(), "archive", &about, AT_SYMLINK_NOFOLLOW) == 0 &&
        about.st_size > ARCHIVE_BYTES && renameat(state_place(), "archive", state_place(), "archive.1") != 0)
        errno = 0;
}

void condense(void) { /* not all at once, where a version before has left very many: a controller waits */
    const struct names names = confirmed();
    size_t count = names.count > KEPT_CHANGES ? names.count - KEPT_CHANGES : 0;
    if (names.count < KEPT_CHANGES + KEPT_MORE || damaged_history())
        return;
    count = count < AT_ONCE ? count : AT_ONCE;
    for (size_t i = 0; i < count; i++) { /* up to one that is damaged */
        const struct soundness soundness = soundness_of(names.at[i]);
        if (!is_sound(&soundness))
            count = i;
    }
    if (!count)
        return;
    note("the %zu oldest confirmed changes go to %s/archive", count, STATE_PLACE);
    const struct names those = {.at = names.at, .count = count};
    const struct all_touched all = sum_up(those, true);
    if (write_history(&all, about_of(names.at[count - 1]).number) != DONE) {
        note("cannot write to %s/%s: %s", STATE_PLACE, HISTORY, complaint("is the disk full?"));
        return;
    }
    rotate_archive();
    for (size_t i = 0; i < count; i++) { /* they are over for good */
        append_archive(names.at[i]);
        discard(names.at[i]);
    }
}
