#include "guard/back.h"

#include "guard/answer.h"
#include "guard/device.h"
#include "guard/kind.h"

#include <string.h>

enum { ROUNDS = 3 };

void say_left(const struct step *step, const char *what) {
    SAY("left", step->knob, what);
    note("left as somebody else has set it: %s: %s", step->knob, what);
}

void say_gone(const struct step *step, const char *why) {
    SAY("gone", step->knob, why);
    note("nothing to put back: %s: %s", step->knob, why);
}

enum outcome back_of_step(const char *tx, const struct plan *plan, const struct step *step,
                          struct back *back) {
    *back = (struct back){.step = step, .plan = plan};
    if (read_saved(tx, step->number, &back->before) != DONE)
        return FAILED;
    back->after_known = read_after(tx, step->number, &back->after);
    return DONE;
}

static enum outcome now_of(const struct back *back, struct state *now) {
    const struct known_kind *known = back->step->known;
    *now = (struct state){0};
    if (known && known->kind->save(back->step, now) == DONE)
        return DONE;
    *now = (struct state){0};
    return FAILED;
}

static const struct item *find(const struct state *state, const char *key) {
    for (size_t i = 0; i < state->count; i++)
        if (is_same(state->at[i].key, key))
            return &state->at[i];
    return NULL;
}

static bool is_volatile(const struct item *item) { return item && (item->flags & ITEM_VOLATILE); }

static bool are_same(const struct back *back, const char *wanted, const char *now) {
    const struct kind *kind = back->step->known->kind;
    if (back->at_boot && kind->is_back_at_boot)
        return kind->is_back_at_boot(wanted, now);
    return is_same(wanted, now);
}

/* What another step sets is put back by that one, or stays as long as that one is made. */
bool back_is_of_another(const struct back *back, const char *key) {
    const struct step *step = back->step;
    const struct kind *kind = step->known->kind;
    if (!back->plan || !kind->names || kind->names(step, key))
        return false;
    for (size_t i = 0; i < back->plan->count; i++)
        if (kind_shares(step, &back->plan->steps[i]) && kind->names(&back->plan->steps[i], key))
            return true;
    return false;
}

/* An item that was there before. */
static void decide_one(struct back *back, const struct item *before, const struct state *now) {
    const struct kind *kind = back->step->known->kind;
    const struct item *after = back->after_known ? find(&back->after, before->key) : NULL,
                      *is = find(now, before->key);
    const bool moves = is_volatile(after) || (back->after_known && kind->moves &&
                                              kind->moves(&back->before, &back->after, before->key));
    const bool not_ours = after && is_same(after->value, before->value) && !moves;
    const bool as_before = is && are_same(back, before->value, is->value);
    if (back_is_of_another(back, before->key) || is_volatile(before) ||
        (not_ours && (!is || is_volatile(is))))
        return;
    if (not_ours && as_before) { /* putting ours back must not move it */
        if (!kind->insists)
            state_add(&back->items, before->key, before->value);
        return;
    }
    /* Of what can be taken away by itself somebody else has done so. */
    if (!is && !not_ours && after && !kind->insists && kind->removes && kind->removes(before->key)) {
        state_add_flagged(&back->left, before->key, "(gone)", ITEM_ABSENT);
        return;
    }
    /* Rules of ours that somebody has taken some of are still ours. */
    const bool takes_away = kind_takes_away(kind, &back->before);
    const bool as_left = !is || as_before || moves || takes_away || !back->after_known ||
                         (after && is_same(after->value, is->value));
    const bool anew = kind->insists || (back->at_boot && kind->restore_at_boot);
    if (not_ours || (!as_left && !anew))
        state_add(&back->left, before->key, is->value);
    else
        state_add(&back->items, before->key, before->value);
}

/* One that the change has made. */
static void decide_made(struct back *back, const struct item *after, const struct state *now) {
    const struct kind *kind = back->step->known->kind;
    const struct item *is = find(now, after->key);
    if (is_volatile(after) || find(&back->before, after->key) || !kind->removes || !kind->removes(after->key))
        return;
    if (is && !is_same(is->value, after->value) && !kind->insists)
        state_add(&back->left, after->key, is->value);
    else
        state_add_flagged(&back->items, after->key, "", ITEM_ABSENT);
}

void back_decide(struct back *back, const struct state *now) {
    back->items = back->left = (struct state){0};
    if (!back->step->known)
        return;
    for (size_t i = 0; i < back->before.count; i++)
        decide_one(back, &back->before.at[i], now);
    for (size_t i = 0; back->after_known && i < back->after.count; i++)
        decide_made(back, &back->after.at[i], now);
}

/* A reader that dies once is asked again: what cannot be seen is put back, over others' edits, too. */
void back_look(struct back *back) {
    struct state now;
    if (now_of(back, &now) != DONE && now_of(back, &now) != DONE)
        now = (struct state){0};
    forgive();
    back_decide(back, &now);
}

static bool item_is_back(const struct back *back, const struct item *item, const struct state *now) {
    const struct kind *kind = back->step->known->kind;
    const struct item *is = find(now, item->key);
    if (item->flags & ITEM_ABSENT)
        return !is;
    if (!is)
        return kind->is_gone && kind->is_gone(back->step, item->key);
    return are_same(back, item->value, is->value) ||
           (back->after_known && kind->is_others && kind->is_others(item, &back->before, &back->after, now));
}

bool is_back(const struct back *back) {
    struct state now;
    if (!back->step->known || now_of(back, &now) != DONE)
        return false;
    for (size_t i = 0; i < back->items.count; i++)
        if (!item_is_back(back, &back->items.at[i], &now))
            return false;
    return true;
}

/* What is not as it has to be; all of it where that cannot be seen. */
static struct state differing_of(const struct back *back) {
    struct state now, differing = {0};
    const bool seen = now_of(back, &now) == DONE;
    forgive();
    for (size_t i = 0; i < back->items.count; i++) {
        const struct item *item = &back->items.at[i];
        if (!seen || !item_is_back(back, item, &now))
            state_add_flagged(&differing, item->key, item->value, item->flags);
    }
    return differing;
}

enum outcome put_back(struct back *back) {
    const struct kind *kind = back->step->known->kind;
    struct state differing = differing_of(back), last = {0};
    const char *why = NULL;
    /* Again where that has moved others: a group of features sets all its members. */
    for (int round = 0; round < ROUNDS && differing.count && !state_identical(&differing, &last); round++) {
        const enum outcome outcome =
            back->at_boot && kind->restore_at_boot
                ? kind->restore_at_boot(back->step, &differing)
                : kind_restore(kind, back->step, &differing, &back->before, &back->after);
        why = outcome == DONE ? NULL : complaint("it is not as before");
        last = differing;
        differing = differing_of(back);
    }
    if (!differing.count)
        return DONE;
    return complain("%s", why ? why : complaint("it is not as before"));
}

bool rest_is_gone(const struct back *back) {
    const char *why = complaint("it is not as before");
    const bool comes_back = back->step->known->kind->removes != NULL; /* it can be made anew */
    struct text text = {0};
    struct state now;
    bool gone = !comes_back && now_of(back, &now) == DONE;
    for (size_t i = 0; gone && i < back->items.count; i++) {
        const struct item *item = &back->items.at[i];
        if (item_is_back(back, item, &now))
            continue;
        gone = !find(&now, item->key);
        text_print(&text, "%s%s", text.size ? ", " : "", item->key);
    }
    if (gone)
        say_gone(back->step, print("%s is not there any more", text_string(&text)));
    else
        complain("%s", why);
    return gone;
}

void back_say_left(struct back *back) {
    struct text text = {0};
    if (back->is_said || !back->left.count)
        return;
    back->is_said = true;
    /* What others have written into a file is not for all who may read what is said here. */
    const bool is_content = is_same(back->step->kind_name, "stored");
    for (size_t i = 0; i < back->left.count; i++)
        text_print(&text, "%s%s %s", i ? ";" : "", back->left.at[i].key,
                   is_content ? "as it is now" : one_line(back->left.at[i].value, 200));
    say_left(back->step, text.at);
}
