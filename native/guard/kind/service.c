/* A service of systemd: on or off now. What starts at boot is not touched (see `unit`). One that loads the
 * packet filter takes its rules along: its tables are items, too. */
#include "guard/answer.h"
#include "guard/kind/files.h"
#include "guard/kind/rules.h"
#include "guard/tool.h"

#include <stdlib.h>
#include <string.h>

#define TABLE "table "
#define WHOLE "text of table "
#define EXEMPT "exemption of "
#define AT "at"

static bool is_filter(const char *unit) {
    return is_word_of(unit,
                      "nftables.service firewalld.service iptables.service ip6tables.service ufw.service");
}

/* --- the tables of a listing, without what is ours --- */

struct tables {
    const struct owned *owned;
    struct state *state; /* TABLE key → what of it lasts; WHOLE key → all of it, as nft takes it */
    struct text steady, whole;
    bool is_dynamic, is_ours;
    uint64_t age_s; /* how much less time elements have left */
};

static void add_steady(struct text *text, struct bytes line) {
    bool space = false;
    for (size_t i = 0; i < line.size;) {
        const size_t passing = passing_part(line, i);
        const bool blank = line.at[i] == ' ' || line.at[i] == '\t' || line.at[i] == '\n';
        if (!passing && !blank)
            text_add(text, space ? " " : "", space);
        if (!passing && !blank)
            text_add(text, line.at + i, 1);
        space = blank || (space && passing);
        i += passing ? passing : 1;
    }
    text_word(text, "\n");
}

static int by_text(const void *one, const void *other) {
    return strcmp(*(char *const *)one, *(char *const *)other);
}

struct elements {
    struct names lasting;
    struct text whole;
    uint64_t age_s;
};

static void add_element(void *of, struct bytes element) {
    struct elements *elements = of;
    size_t begin, end;
    uint64_t seconds;
    const bool expires = read_expiry(element, &begin, &end, &seconds);
    if (expires && seconds <= elements->age_s)
        return;
    text_word(&elements->whole, elements->whole.size ? ",\n\t\t\t" : "");
    if (expires) {
        text_add(&elements->whole, element.at, begin);
        text_print(&elements->whole, " expires %llus", (unsigned long long)(seconds - elements->age_s));
        text_add(&elements->whole, element.at + end, element.size - end);
        return;
    }
    text_add(&elements->whole, element.at, element.size);
    struct text steady = {0};
    add_steady(&steady, element);
    char **more = take((elements->lasting.count + 1) * sizeof *more);
    if (elements->lasting.count)
        memcpy(more, elements->lasting.at, elements->lasting.count * sizeof *more);
    more[elements->lasting.count++] = steady.at;
    elements->lasting.at = more;
}

static void add_elements(struct tables *tables, struct bytes text) {
    struct elements elements = {.age_s = tables->age_s};
    each_element(text, add_element, &elements);
    if (elements.whole.size)
        text_print(&tables->whole, "\t\telements = { %s }\n", elements.whole.at);
    if (tables->is_dynamic || !elements.lasting.count)
        return;
    qsort(elements.lasting.at, elements.lasting.count, sizeof *elements.lasting.at, by_text);
    for (size_t i = 0; i < elements.lasting.count; i++)
        text_word(&tables->steady, elements.lasting.at[i]);
}

static void end_table(struct tables *tables, const struct nft_line *line) {
    const char *name =
        print("%s %s", keep(line->family.at, line->family.size), keep(line->table.at, line->table.size));
    if (!tables->is_ours) {
        state_add(tables->state, print(TABLE "%s", name), text_string(&tables->steady));
        state_add_flagged(tables->state, print(WHOLE "%s", name), text_string(&tables->whole), ITEM_VOLATILE);
    }
    tables->steady = tables->whole = (struct text){0};
}

static void add_table_line(void *of, const struct nft_line *line) {
    struct tables *tables = of;
    if (line->what == NFT_TABLE)
        tables->is_ours = tables->owned && is_owned(tables->owned, line);
    if (line->what == NFT_SET)
        tables->is_dynamic = false;
    if (line->what == NFT_FLAGS)
        tables->is_dynamic = line->is_dynamic;
    if (line->what == NFT_ELEMENTS) {
        add_elements(tables, line->text);
    } else if (line->what != NFT_RULE || !tables->owned || !is_owned(tables->owned, line)) {
        text_print(&tables->whole, "%s\n", keep(line->text.at, line->text.size));
        add_steady(&tables->steady, line->text);
    }
    if (line->what == NFT_END)
        end_table(tables, line);
}

static void add_tables(const struct text *listing, const struct owned *owned, uint64_t age_s,
                       struct state *state) {
    struct tables tables = {.owned = owned, .state = state, .age_s = age_s};
    read_nft((struct bytes){text_string(listing), listing->size}, add_table_line, &tables);
}

/* --- the service --- */

static enum outcome service_state(const char *unit, const char **state) {
    struct text loaded = {0}, active = {0};
    int code;
    const char *const words[] = {"systemctl", "is-active", unit, NULL};
    if (ASK(&loaded, "systemctl", "show", "-p", "LoadState", "--value", unit) != DONE)
        return FAILED;
    if (!loaded.size || !is_word_of(one_line(loaded.at, strcspn(loaded.at, "\n")), "loaded masked"))
        return complain("there is no %s", unit);
    if (tool_code(&active, &code, words) != DONE)
        return FAILED;
    const char *word = active.size ? one_line(active.at, strcspn(active.at, "\n")) : "";
    if (!is_word_of(word, "active activating reloading inactive deactivating failed"))
        return complain("whether %s is active cannot be read: '%s'", unit, word);
    *state = is_word_of(word, "active activating reloading") ? "on" : "off";
    return DONE;
}

static enum outcome check_rules(const struct state *state) {
    struct text all = {0};
    text_word(&all, "flush ruleset\n");
    for (size_t i = 0; i < state->count; i++)
        if (starts_with(state->at[i].key, WHOLE))
            text_word(&all, state->at[i].value);
    struct text said = {0};
    if (tool_said(&said, all.at, (const char *const[]){"nft", "-c", "-f", "-", NULL}) == DONE)
        return DONE;
    return complain("nft could not put back the rules that are there");
}

static enum outcome save_rules(struct state *state) {
    const char *programs[2];
    struct owned owned;
    if (legacy_programs(programs))
        return complain("there are rules of %s, which nft cannot put back", programs[0]);
    if (!tool_path("nft"))
        return DONE;
    if (owned_read(&owned) != DONE)
        return FAILED;
    add_tables(&owned.listing, &owned, 0, state);
    const struct names interfaces = owned_interfaces(&owned);
    for (size_t i = 0; i < interfaces.count; i++)
        state_add(state, print(EXEMPT "%s", interfaces.at[i]), owned_mode(&owned, interfaces.at[i]));
    state_add_flagged(state, AT, print("%lld %s", (long long)now_s(), boot_id()), ITEM_VOLATILE);
    return DONE;
}

static enum outcome save(const struct step *step, struct state *state) {
    const char *now;
    if (service_state(step->target, &now) != DONE)
        return FAILED;
    state_add(state, "state", now);
    return is_filter(step->target) ? save_rules(state) : DONE;
}

static enum outcome turn(const char *unit, const char *value) {
    if (is_same(value, "off"))
        return RUN("systemctl", "stop", unit);
    if (!is_same(value, "on"))
        return complain("a service is on or off, not '%s'", value);
    if (RUN("systemctl", "start", unit) == DONE)
        return DONE;
    const char *why = complaint("it does not start");
    if (RUN("systemctl", "reset-failed", unit) != DONE)
        forgive();
    return complain("%s", why);
}

/* The rules that were there when it was begun to put others back, should a guard be ended before all are. */
static const char *aside(const char *unit) { return print("rules.%s", unit); }

static enum outcome put(const struct step *step) {
    struct state state = {0};
    if (!explaining && is_filter(step->target)) {
        remove_own(run_place(), aside(step->target));
        if (save_rules(&state) != DONE || (tool_path("nft") && check_rules(&state) != DONE))
            return FAILED;
    }
    return turn(step->target, step->value);
}

/* How long ago it was saved [s]; after another boot all that could expire has. */
static uint64_t age_of(const struct state *before) {
    const char *said = state_value(before, AT);
    struct bytes rest = {said ? said : "", said ? strlen(said) : 0}, word;
    uint64_t then;
    if (!cut(&rest, ' ', &word) || !bytes_number(word, INT64_MAX, &then) || !bytes_are(rest, boot_id()))
        return UINT32_MAX;
    const uint64_t now = (uint64_t)now_s();
    return now > then ? now - then : 0;
}

static enum outcome rules_aside(const char *unit, struct text *listing) {
    if (read_own(run_place(), aside(unit), listing) == DONE && listing->size)
        return DONE;
    forgive();
    *listing = (struct text){0};
    if (rules_list(listing) != DONE)
        return FAILED;
    return store(run_place(), aside(unit), text_string(listing), listing->size, false);
}

/* A table that somebody else has made instead of one of ours is not removed. */
static enum outcome check_others(const struct state *items, const struct state *after,
                                 const struct state *now) {
    for (size_t i = 0; i < items->count; i++) {
        const struct item *item = &items->at[i];
        const char *there = starts_with(item->key, TABLE) ? state_value(now, item->key) : NULL;
        const char *made = state_value(after, item->key);
        const bool as_before = there && !(item->flags & ITEM_ABSENT) && is_same(there, item->value);
        if (there && !as_before && (!made || !is_same(made, there)))
            return complain(
                "somebody else has made %s meanwhile: 'nft delete %s' lets the former one come back",
                item->key, item->key);
    }
    return DONE;
}

static bool is_among(const struct state *items, const char *key) { return state_value(items, key) != NULL; }

/* Those of others as they are, ours as they were. */
static void compose(const struct state *items, const struct state *before, const struct state *now,
                    struct text *all) {
    text_word(all, "flush ruleset\n");
    for (size_t i = 0; i < now->count; i++) {
        const char *key = now->at[i].key;
        if (starts_with(key, WHOLE) && !is_among(items, print(TABLE "%s", key + strlen(WHOLE))))
            text_word(all, now->at[i].value);
    }
    for (size_t i = 0; i < items->count; i++) {
        const struct item *item = &items->at[i];
        if (!starts_with(item->key, TABLE) || (item->flags & ITEM_ABSENT))
            continue;
        const char *whole = state_value(before, print(WHOLE "%s", item->key + strlen(TABLE)));
        struct text listing = {0};
        struct state aged = {0};
        text_word(&listing, whole ? whole : "");
        add_tables(&listing, NULL, age_of(before), &aged);
        for (size_t j = 0; j < aged.count; j++)
            if (starts_with(aged.at[j].key, WHOLE))
                text_word(all, aged.at[j].value);
    }
}

static enum outcome put_exemptions(const struct state *items, const struct owned *owned) {
    struct state wanted = {0};
    for (size_t i = 0; i < items->count; i++)
        if (starts_with(items->at[i].key, EXEMPT) && !(items->at[i].flags & ITEM_ABSENT))
            state_add(&wanted, items->at[i].key + strlen(EXEMPT), items->at[i].value);
    const struct names interfaces = owned_interfaces(owned);
    for (size_t i = 0; i < interfaces.count; i++)
        if (!is_among(&wanted, interfaces.at[i]))
            state_add(&wanted, interfaces.at[i], owned_mode(owned, interfaces.at[i]));
    if (owned_forget() != DONE)
        return FAILED;
    for (size_t i = 0; i < wanted.count; i++)
        if (exempt(wanted.at[i].key, wanted.at[i].value) != DONE)
            return FAILED;
    return DONE;
}

static enum outcome restore(const struct step *step, const struct state *items, const struct state *before,
                            const struct state *after) {
    const char *value = state_value(items, "state");
    struct owned owned = {0};
    struct text listing = {0}, all = {0};
    struct state now = {0};
    if (!is_filter(step->target) || !tool_path("nft"))
        return value ? turn(step->target, value) : DONE;
    if (value) /* it has not replaced any yet: those that are there now count */
        remove_own(run_place(), aside(step->target));
    if (rules_aside(step->target, &listing) != DONE || owned_read(&owned) != DONE)
        return FAILED;
    add_tables(&listing, &owned, 0, &now);
    if (check_others(items, after, &now) != DONE) {
        remove_own(run_place(), aside(step->target));
        return FAILED;
    }
    /* Starting it loads the rules of its file, in place of all that are there now. */
    if (value && turn(step->target, value) != DONE)
        return FAILED;
    compose(items, before, &now, &all);
    if (RUN_WITH(all.at, "nft", "-f", "-") != DONE || put_exemptions(items, &owned) != DONE)
        return FAILED;
    remove_own(run_place(), aside(step->target));
    return DONE;
}

static enum outcome get(const struct step *step, struct text *value) {
    const char *now;
    if (service_state(step->target, &now) != DONE)
        return FAILED;
    text_word(value, now);
    return DONE;
}

static bool removes(const char *key) { return starts_with(key, TABLE); }

const struct kind kind_service = {
    .save = save, .put = put, .restore = restore, .get = get, .removes = removes, .insists = true};
