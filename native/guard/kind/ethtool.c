/* What ethtool sets: TARGET is GROUP.PARAMETER, or several of one group, or a group alone. */
#include "guard/read/ethtool.h"
#include "guard/kind/files.h"
#include "guard/tool.h"

#include <string.h>

enum { MOST_WORDS = 128 };

static const struct {
    const char *name, *show, *set;
} FLAGS[GROUPS] = {[COALESCE] = {"coalesce", "-c", "-C"}, [RING] = {"ring", "-g", "-G"},
                   [CHANNELS] = {"channels", "-l", "-L"}, [FEATURE] = {"feature", "-k", "-K"},
                   [PAUSE] = {"pause", "-a", "-A"},       [EEE] = {"eee", "--show-eee", "--set-eee"}};

static enum outcome group_of(const struct step *step, enum ethtool_group *group) {
    const size_t size = strcspn(step->target, ". ");
    for (unsigned i = 0; i < GROUPS; i++)
        if (strlen(FLAGS[i].name) == size && strncmp(step->target, FLAGS[i].name, size) == 0) {
            *group = (enum ethtool_group)i;
            return DONE;
        }
    return complain("ethtool has no %s here", step->target);
}

struct found {
    struct state *state;
    bool maximums;
};

static void add_pair(void *of, const char *name, size_t size, struct bytes value, bool maximum) {
    const struct found *found = of;
    if (maximum == found->maximums)
        state_add(found->state, keep(name, size), keep(value.at, value.size));
}

static enum outcome show(const struct step *step, enum ethtool_group group, bool maximums,
                         struct state *state) {
    struct text said = {0};
    struct found found = {state, maximums};
    if (ASK(&said, "ethtool", FLAGS[group].show, step->interface) == DONE)
        read_ethtool(group, (struct bytes){text_string(&said), said.size}, add_pair, &found);
    if (state->count)
        return DONE;
    return complain("%s has no %s that ethtool shows (%s)", step->interface, FLAGS[group].name,
                    complaint("it says nothing of it"));
}

static const char *adaptive_of(const char *key) {
    return starts_with(key, "rx-") ? "adaptive-rx" : starts_with(key, "tx-") ? "adaptive-tx" : NULL;
}

/* The delays of an adaptive driver change by themselves. */
static void mark_volatile(struct state *state) {
    for (size_t i = 0; i < state->count; i++) {
        const char *way = adaptive_of(state->at[i].key), *adaptive = way ? state_value(state, way) : NULL;
        if (adaptive && is_same(adaptive, "on"))
            state->at[i].flags |= ITEM_VOLATILE;
    }
}

static enum outcome save(const struct step *step, struct state *state) {
    enum ethtool_group group;
    if (group_of(step, &group) != DONE || show(step, group, false, state) != DONE)
        return FAILED;
    if (group == COALESCE)
        mark_volatile(state);
    return DONE;
}

/* What an adaptive driver moves, it may move later on, too. */
static bool moves(const struct state *before, const struct state *after, const char *key) {
    const char *way = adaptive_of(key);
    const char *was = way ? state_value(before, way) : NULL, *is = way ? state_value(after, way) : NULL;
    return was && is && !is_same(was, is);
}

/* The name without its group, as `ethtool` takes it. */
static const char *parameter(enum ethtool_group group, const char *name) {
    const size_t size = strlen(FLAGS[group].name);
    if (strncmp(name, FLAGS[group].name, size) == 0 && name[size] == '.')
        name += size + 1;
    const char *other = group == FEATURE ? ethtool_short((struct bytes){name, strlen(name)}) : NULL;
    return other ? other : name;
}

static bool shares(const struct step *step, const struct step *other) {
    enum ethtool_group group, others;
    return group_of(step, &group) == DONE && group_of(other, &others) == DONE && group == others;
}

/* An item, or one that goes with what the step names. */
static bool names_item(const struct step *step, const char *key) {
    enum ethtool_group group;
    if (group_of(step, &group) != DONE)
        return false;
    const bool of_tso = group == FEATURE && starts_with(key, "tx-tcp") && strstr(key, "segmentation");
    const struct names names = words_of(step->target);
    for (size_t i = 0; i < names.count; i++)
        if (is_same(parameter(group, names.at[i]), of_tso ? "tso" : key))
            return true;
    return false;
}

struct words {
    const char *at[MOST_WORDS + 1];
    size_t count;
};

static void add_words(struct words *words, const char *name, const char *value) {
    if (words->count + 2 > MOST_WORDS)
        return;
    words->at[words->count++] = name;
    words->at[words->count++] = value;
    words->at[words->count] = NULL;
}

static struct words command(const struct step *step, enum ethtool_group group) {
    return (struct words){.at = {"ethtool", FLAGS[group].set, step->interface}, .count = 3};
}

/* A value that is there already is an error for some versions. */
static enum outcome run(struct words *words) {
    if (tool_run(NULL, words->at) == DONE)
        return DONE;
    const char *why = complaint("ethtool does not take it");
    if (strstr(why, "unmodified") || strstr(why, "parameters changed") || strstr(why, "no change"))
        return DONE;
    return complain("%s", why);
}

static enum outcome add_values(const struct step *step, enum ethtool_group group, struct words *words) {
    const struct names names = words_of(step->target), values = words_of(step->value);
    struct state most = {0};
    for (size_t i = 0; i < names.count && values.count; i++) {
        const char *name = parameter(group, names.at[i]);
        const char *value = values.at[i < values.count ? i : values.count - 1];
        if (is_same(value, "max") && !most.count && show(step, group, true, &most) != DONE)
            return FAILED;
        if (is_same(value, "max"))
            value = state_value(&most, name);
        if (!value)
            return complain("%s has no maximum of %s", step->interface, name);
        add_words(words, name, value);
    }
    return DONE;
}

static enum outcome prepare(const struct step *step, enum ethtool_group group, struct words *words) {
    struct state now = {0};
    const char *way = group == COALESCE ? adaptive_of(step->target + strlen("coalesce.")) : NULL;
    if (way && save(step, &now) != DONE)
        return FAILED;
    const char *adaptive = way ? state_value(&now, way) : NULL;
    if (adaptive && is_same(adaptive, "on")) { /* an adaptive driver takes no notice of a fixed delay */
        struct words first = command(step, group);
        add_words(&first, way, "off");
        if (run(&first) != DONE)
            return FAILED;
    }
    if (group == PAUSE) {
        if (save(step, &now) != DONE)
            return FAILED;
        const char *negotiated = state_value(&now, "autoneg");
        if (negotiated && is_same(negotiated, "on"))
            add_words(words, "autoneg", "off");
    }
    return DONE;
}

static enum outcome put(const struct step *step) {
    enum ethtool_group group;
    if (group_of(step, &group) != DONE)
        return FAILED;
    struct words words = command(step, group);
    if (prepare(step, group, &words) != DONE)
        return FAILED;
    if (group == EEE) {
        add_words(&words, "eee", step->value);
    } else if (group == CHANNELS) {
        const struct names pairs = words_of(step->value);
        for (size_t i = 0; i + 1 < pairs.count; i += 2)
            add_words(&words, pairs.at[i], pairs.at[i + 1]);
    } else if (add_values(step, group, &words) != DONE) {
        return FAILED;
    }
    return run(&words);
}

enum turn { FIRST, THEN, LAST };

/* As long as it is adaptive it may take no fixed delay. */
static enum turn turn_of(const struct item *item) {
    if (!starts_with(item->key, "adaptive"))
        return THEN;
    return is_same(item->value, "off") ? FIRST : LAST;
}

/* At once, or what is possible of it. */
static void set_differing(const struct step *step, enum ethtool_group group, const struct state *items,
                          const struct state *now, enum turn turn) {
    struct words words = command(step, group);
    const size_t begin = words.count;
    for (size_t i = 0; i < items->count; i++) {
        const char *value = state_value(now, items->at[i].key);
        if (turn_of(&items->at[i]) == turn && (!value || !is_same(value, items->at[i].value)))
            add_words(&words, items->at[i].key, items->at[i].value);
    }
    if (words.count == begin || run(&words) == DONE)
        return;
    for (size_t i = begin; i + 1 < words.count; i += 2) {
        struct words one = command(step, group);
        add_words(&one, words.at[i], words.at[i + 1]);
        if (run(&one) != DONE)
            continue; /* what does not come back is seen by who compares */
    }
}

static enum outcome restore(const struct step *step, const struct state *items, const struct state *before,
                            const struct state *after) {
    (void)before;
    (void)after;
    enum ethtool_group group;
    if (group_of(step, &group) != DONE)
        return FAILED;
    /* More than once: a group of features changes its members, and adaptive moderation the fixed delays. */
    for (int round = 0; round < 3; round++)
        for (enum turn turn = FIRST; turn <= LAST; turn++) {
            struct state now = {0};
            if (show(step, group, false, &now) != DONE)
                return FAILED;
            set_differing(step, group, items, &now, turn);
        }
    return DONE;
}

static enum outcome get(const struct step *step, struct text *value) {
    enum ethtool_group group;
    struct state state = {0};
    if (group_of(step, &group) != DONE || save(step, &state) != DONE)
        return FAILED;
    if (group == EEE) {
        text_word(value, state.at[0].value);
        return DONE;
    }
    const struct names names = words_of(step->target);
    for (size_t i = 0; group == CHANNELS && i < state.count; i++)
        if (!is_same(state.at[i].value, "0"))
            text_print(value, "%s%s %s", value->size ? " " : "", state.at[i].key, state.at[i].value);
    for (size_t i = 0; group != CHANNELS && i < names.count; i++) {
        const char *one = state_value(&state, parameter(group, names.at[i]));
        if (one)
            text_print(value, "%s%s", value->size ? " " : "", one);
    }
    return DONE;
}

const struct kind kind_ethtool = {.save = save,
                                  .put = put,
                                  .restore = restore,
                                  .get = get,
                                  .moves = moves,
                                  .shares = shares,
                                  .names = names_item};
