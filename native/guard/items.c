#include "guard/items.h"

#include "guard/read/state.h"
#include "guard/sha256.h"

#include <string.h>

void state_add_flagged(struct state *state, const char *key, const char *value, unsigned flags) {
    if (state->count == state->room) {
        state->room = state->room ? 2 * state->room : 16;
        struct item *more = take(state->room * sizeof *more);
        if (state->count)
            memcpy(more, state->at, state->count * sizeof *more);
        state->at = more;
    }
    state->at[state->count++] = (struct item){keep_text(key), keep_text(value), flags};
}

void state_add(struct state *state, const char *key, const char *value) {
    state_add_flagged(state, key, value, 0);
}

static const struct item *item_of(const struct state *state, const char *key) {
    for (size_t i = 0; i < state->count; i++)
        if (is_same(state->at[i].key, key))
            return &state->at[i];
    return NULL;
}

const char *state_value(const struct state *state, const char *key) {
    const struct item *item = item_of(state, key);
    return item ? item->value : NULL;
}

static bool has_all(const struct state *one, const struct state *other, unsigned but) {
    for (size_t i = 0; i < one->count; i++) {
        const char *value = state_value(other, one->at[i].key);
        if (!(one->at[i].flags & but) && (!value || !is_same(value, one->at[i].value)))
            return false;
    }
    return true;
}

bool state_same(const struct state *one, const struct state *other) {
    return has_all(one, other, ITEM_VOLATILE) && has_all(other, one, ITEM_VOLATILE);
}

bool state_identical(const struct state *one, const struct state *other) {
    return has_all(one, other, 0) && has_all(other, one, 0);
}

static void add_escaped(struct text *text, const char *plain) {
    for (; *plain; plain++) {
        const size_t size = strcspn(plain, "\\\t\n");
        text_add(text, plain, size);
        plain += size;
        if (!*plain)
            return;
        text_word(text, *plain == '\t' ? "\\t" : *plain == '\n' ? "\\n" : "\\\\");
    }
}

void state_write(const struct state *state, struct text *text) {
    for (size_t i = 0; i < state->count; i++) {
        add_escaped(text, state->at[i].key);
        text_word(text, "\t");
        add_escaped(text, state->at[i].value);
        text_word(text, state->at[i].flags & ITEM_VOLATILE ? "\tvolatile\n" : "\n");
    }
    char hex[65];
    sha256_hex(text_string(text), text->size, hex);
    text_print(text, "end\t%zu\t%s\n", state->count, hex);
}

static char *kept_plain(struct bytes escaped) {
    char *plain = take(escaped.size + 1);
    size_t size;
    return unescape(escaped, plain, &size) == DONE ? plain : NULL;
}

enum outcome state_read(const struct text *text, struct state *state) {
    struct bytes rest;
    uint64_t count;
    if (read_state_end((struct bytes){text_string(text), text->size}, &rest, &count) != SOUND)
        return FAILED;
    while (rest.size) {
        struct state_line line;
        if (read_state_line(&rest, &line) != DONE)
            return FAILED;
        const char *key = kept_plain(line.key), *value = kept_plain(line.value);
        if (!key || !value)
            return FAILED;
        state_add_flagged(state, key, value, line.is_volatile ? ITEM_VOLATILE : 0);
    }
    return state->count == count ? DONE : FAILED;
}

char *state_shown(const struct state *state) {
    struct text text = {0};
    for (size_t i = 0; i < state->count; i++)
        text_print(&text, "%s%s %s", i ? "; " : "", state->at[i].key, state->at[i].value);
    return one_line(text_string(&text), 300);
}

static bool is_equal(const char *one, const char *other) {
    return one && other ? is_same(one, other) : one == other;
}

void states_fold(struct state *before, struct state *after, bool (*removes)(const char *key),
                 const struct state *next_before, const struct state *next_after) {
    struct state first = *before, then = *after;
    *after = *next_after;
    after->room = after->count; /* what is added goes to a copy */
    *before = (struct state){0};
    for (size_t i = 0; i < next_before->count; i++) {
        const struct item *item = &next_before->at[i];
        const char *made = state_value(&then, item->key);
        if (made && removes && removes(item->key) && !state_value(&first, item->key) &&
            is_same(made, item->value))
            continue; /* the first has made it: before that it was not there */
        state_add_flagged(before, item->key, item->value, item->flags);
    }
    for (size_t i = 0; i < first.count; i++) {
        const struct item *item = &first.at[i];
        const char *made = state_value(&then, item->key);
        if (is_equal(made, item->value))
            continue; /* not changed by the first */
        const bool moves =
            !(item->flags & ITEM_VOLATILE) && made && (item_of(&then, item->key)->flags & ITEM_VOLATILE);
        struct item *next = (struct item *)item_of(before, item->key);
        if (!next) /* it is not there for the second: it was the first that took it away, or it went by itself
                    */
            state_add_flagged(before, item->key, item->value, item->flags);
        else if (made ? moves || is_same(next->value, made) : !then.count) {
            next->value = item->value;
            next->flags = item->flags;
        }
        /* Otherwise somebody else has set it between the two, and it stays so; what moves by itself tells
         * nothing. */
        if (!state_value(next_after, item->key) && made)
            state_add_flagged(after, item->key, made, item->flags);
    }
}
