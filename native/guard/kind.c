#include "guard/kind.h"

enum outcome kind_restore(const struct kind *kind, const struct step *step, const struct state *items,
                          const struct state *before, const struct state *after) {
    if (kind->restore)
        return kind->restore(step, items, before, after);
    const char *value = state_value(items, step->target);
    return value ? kind->set(step, value) : DONE;
}

enum outcome kind_get(const struct kind *kind, const struct step *step, struct text *value) {
    if (kind->get)
        return kind->get(step, value);
    struct state state = {0};
    if (kind->save(step, &state) != DONE || !state.count)
        return FAILED;
    text_word(value, state.at[0].value);
    return DONE;
}

bool kind_takes_away(const struct kind *kind, const struct state *before) {
    bool takes_away = kind->nothing && before->count;
    for (size_t i = 0; takes_away && i < before->count; i++)
        takes_away = is_same(before->at[i].value, kind->nothing);
    return takes_away;
}

bool kind_shares(const struct step *step, const struct step *other) {
    return step->known && step->known == other->known && step->known->kind->shares &&
           is_same(step->interface, other->interface) && step->known->kind->shares(step, other);
}
