/* What is shown; and what a person gives up. */
#include "guard/answer.h"
#include "guard/back.h"
#include "guard/change.h"
#include "guard/device.h"
#include "guard/history.h"
#include "guard/lock.h"
#include "guard/recover.h"

#include <string.h>

enum { LOG_LINES = 20 };

static void remark(const char *tx, const struct about *about, struct tx_state *state) {
    const struct soundness soundness = soundness_of(tx);
    const char *word = state->word;
    if (is_word_of(word, "undone abandoned preparing none other"))
        return;
    if (is_same(word, "stuck")) {
        state->why = print("%s; 'wulf rollback --abandon %s' leaves it so", state->why, tx);
    } else if (!is_sound(&soundness)) {
        const bool kept = is_same(word, "confirmed");
        state->word = "damaged";
        state->why = print(kept ? "it is confirmed, and its journal is damaged (%s): it cannot be rolled back"
                                : "its journal is damaged: %s",
                           soundness.damaged);
    } else if (!is_same(word, "confirmed") && !is_same(about->boot, boot_id())) {
        state->why = "left open: the node was started anew since";
    } else if (!is_same(word, "confirmed") && is_late(tx)) {
        state->why = "overdue: nobody confirmed it, and it is not put back yet";
    }
}

static const char *rolled_to(const char *tx) {
    struct text text = {0};
    if (read_own(state_place(), print("tx/%s/rollback", tx), &text) != DONE)
        forgive();
    return text.size > 1 ? keep(text.at, text.size - 1) : "";
}

static void show_change(const struct tx_row *row) {
    const struct about about = about_of(row->name);
    struct tx_state state = row->state;
    remark(row->name, &about, &state);
    const char *steps = print("%zu", about.steps);
    SAY("tx", row->name, about.at, about.owner, about.boot, steps, rolled_to(row->name), state.word,
        *state.why ? state.why : NULL);
}

static void show_setting(const struct touched *touched) {
    struct back back = {.step = &touched->step,
                        .before = touched->before,
                        .after = touched->after,
                        .after_known = touched->after_known};
    back_look(&back);
    bool differs = touched->broken != NULL;
    for (size_t i = 0; i < back.left.count; i++) { /* of items that the change has set itself */
        const char *before = state_value(&back.before, back.left.at[i].key),
                   *made = state_value(&back.after, back.left.at[i].key);
        differs = differs || !before || !made || !is_same(before, made);
    }
    differs = differs || !is_back(&back);
    forgive();
    /* A content that root has written himself may be of a file that not all may read. */
    const char *value = caller && starts_with(touched->step.value, "file:") ? "file" : touched->step.value;
    SAY("set", touched->step.knob, touched->step.kind_name, touched->step.interface, touched->step.target,
        touched->tx, differs ? "different" : "same", value_now(&touched->step), value, touched->read_back);
}

static void show_log(void) {
    struct text text = {0};
    if (read_own(state_place(), "log", &text) != DONE)
        forgive();
    size_t begin = text.size, lines = 0;
    while (begin && lines <= LOG_LINES)
        if (text.at[--begin] == '\n')
            lines++;
    if (lines > LOG_LINES)
        begin++;
    struct bytes rest = {text_string(&text) + begin, text.size - begin}, line;
    while (next_line(&rest, &line))
        SAY("log", keep(line.at, line.size));
}

void status(void) {
    SAY("boot", boot_id());
    SAY("uptime", print("%lld", (long long)now_s()));
    const struct owner owner = owner_now();
    if (owner.is)
        SAY("lock", owner.name, print("%lld", (long long)(now_s() - owner.since)),
            print("%lld", (long long)(owner.until - now_s())));
    const char *damaged = damaged_history();
    if (damaged)
        SAY("tx", "history", "-", "-", "-", "0", "", "damaged", damaged);
    const struct tx_rows rows = journal();
    const uint64_t through = history_through();
    for (size_t i = 0; i < rows.count; i++)
        if (!is_same(rows.at[i].state.word, "confirmed") || rows.at[i].number > through)
            show_change(&rows.at[i]);
    const struct all_touched all = touched_since("original");
    for (size_t i = 0; i < all.count; i++)
        show_setting(&all.at[i]);
    show_log();
}

/* --- released by a person --- */

static void show_left(const struct step *step, const char *before) {
    SAY("leaves", step->knob, step->kind_name, step->interface, step->target, value_now(step), before);
}

static void leaves_of_history(void) {
    const struct all_touched all = touched_since("original");
    for (size_t i = 0; i < all.count; i++)
        if (starts_with(all.at[i].references, "history"))
            show_left(&all.at[i].step, "not known");
}

static void leaves_of_step(const char *tx, const struct plan *plan, const struct step *step,
                           const struct soundness *soundness) {
    struct back back;
    const bool known =
        step->known && !is_damaged(soundness, step->number) && back_of_step(tx, plan, step, &back) == DONE;
    if (known) {
        back_look(&back);
        if (!back.left.count && is_back(&back)) {
            forgive();
            return;
        }
    }
    forgive();
    show_left(step, known ? state_shown(&back.before) : "not known");
}

void leaves(const char *tx) {
    struct plan plan = {0};
    if (is_same(tx, "history")) {
        leaves_of_history();
        return;
    }
    require_own(tx); /* what was before may be of a file that not all may read */
    const struct soundness soundness = soundness_of(tx);
    if (what_of(tx, &plan) != DONE)
        plan.count = 0;
    forgive();
    for (size_t i = 0; i < plan.count; i++)
        leaves_of_step(tx, &plan, &plan.steps[i], &soundness);
    if (!plan.count)
        SAY("leaves", "-", "-", "-", "-", "not known", "not known");
}

/* What is kept one by one can still be rolled back. */
static void abandon_history(void) {
    if (!damaged_history())
        return;
    leaves("history");
    note("abandoned: the condensed history was damaged");
    struct state none = {0};
    struct text text = {0};
    state_add(&none, "through", "0");
    state_write(&none, &text);
    if (store(state_place(), "history", text.at, text.size, true) != DONE)
        fail(EXIT_ERROR, "cannot write to %s: is the disk full?", STATE_PLACE);
}

void abandon(const char *tx) {
    note_about("abandon", tx);
    if (is_same(tx, "history")) {
        if (caller)
            fail(EXIT_BUSY, "what is condensed is of all users: root alone gives it up");
        abandon_history();
        return;
    }
    const struct tx_state state = state_of(tx);
    const struct soundness soundness = soundness_of(tx);
    require_own(tx);
    if (is_same(state.word, "none"))
        fail(EXIT_ERROR, "there is no change %s here", tx);
    if (is_word_of(state.word, "undone abandoned"))
        return;
    if (is_same(state.word, "confirmed") && is_sound(&soundness))
        fail(EXIT_ERROR, "%s is confirmed, and can be rolled back", tx);
    if (is_same(state.word, "other")) {
        SAY("leaves", "-", "-", "-", "-", "not known", "not known");
        discard(tx);
        remove_own(state_place(), print("open.%s", tx));
        return;
    }
    if (!is_word_of(state.word, "confirmed stuck"))
        fail(EXIT_ERROR, "%s is open, and is put back by itself when nobody confirms it", tx);
    leaves(tx);
    if (give_up_journal(tx) != DONE)
        fail(EXIT_ERROR, "cannot write to %s: is the disk full?", STATE_PLACE);
    close_change(tx);
}
