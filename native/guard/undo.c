#include "guard/undo.h"

#include "guard/answer.h"
#include "guard/back.h"
#include "guard/change.h"
#include "guard/kind.h"
#include "guard/kind/module.h"
#include "guard/recover.h"

#include <stdlib.h>

enum { ROUNDS = 3 };

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
    const int ranks[2] = {back_rank_of(left->knob, left->kind_name),
                          back_rank_of(right->knob, right->kind_name)};
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
               back_of_step(undoing->tx, &undoing->plan, step, &undoing->backs[i]) != DONE) {
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

static char *left_of(const char *tx) { return print("tx/%s/left", tx); }

/* What was found to be somebody else's when an undo began, should it be ended and go on. */
static bool read_left(const char *tx, struct state *left) {
    struct text text = {0};
    const bool known = read_own(state_place(), left_of(tx), &text) == DONE && state_read(&text, left) == DONE;
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
        store(state_place(), left_of(undoing->tx), text.at, text.size, false) != DONE)
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
    /* Its parameter may be back, and what the link had not. */
    if (!*stuck && modules_back() != DONE)
        stuck = print(" %s;", complaint("a driver cannot be loaded again"));
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
