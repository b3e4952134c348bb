#include "guard/kind/rules.h"

#include "guard/answer.h"
#include "guard/kind/files.h"
#include "guard/tool.h"

#include <string.h>
#include <unistd.h>

#define OWNED "owned"
#define PENDING "pending "
#define LEGACY "legacy"

enum { KEY_WORDS = 6 };

enum outcome rules_list(struct text *listing) {
    if (!tool_path("nft"))
        return complain("nft is not installed");
    if (LIST(listing, "--version", "nft", "-nn", "-a", "list", "ruleset") != DONE)
        return FAILED;
    return is_nft((struct bytes){text_string(listing), listing->size})
               ? DONE
               : complain("nft says what are no rules: %s", one_line(listing->at, 80));
}

size_t legacy_programs(const char *programs[2]) {
    static const char *const known[][2] = {{"/proc/net/ip_tables_names", "iptables-legacy"},
                                           {"/proc/net/ip6_tables_names", "ip6tables-legacy"}};
    size_t count = 0;
    for (size_t i = 0; i < COUNT(known); i++) {
        struct text text = {0};
        if (read_any(known[i][0], &text) == DONE && text.size)
            programs[count++] = known[i][1];
    }
    forgive();
    return count;
}

/* --- what is ours --- */

static char *text_of(struct bytes bytes) { return keep(bytes.at, bytes.size); }

static char *key_of(const char *interface, const struct nft_line *line) {
    return print("%s %s %s %llu %s %llu", interface, text_of(line->family), text_of(line->table),
                 (unsigned long long)line->table_handle, line->what == NFT_TABLE ? "*" : text_of(line->chain),
                 (unsigned long long)line->handle);
}

/* The text of our rules for an interface: that which accepts and, in a table of our own, that which does not
 * track. */
static bool is_our_text(const char *interface, struct bytes text) {
    text = bytes_trimmed(text);
    for (int i = 0; i < 2; i++)
        if (bytes_are(text, print("%s \"%s\" accept comment \"wulf\"", i ? "oifname" : "iifname", interface)))
            return true;
    return false;
}

struct seeker {
    const char *interface;
    const struct state *known; /* rules of ours that were recorded */
    struct state *found;
    const char *before; /* keys that were there before ours, between newlines; NULL to seek recorded ones */
    const char *own_table;
};

static void seek_recorded(void *of, const struct nft_line *line) {
    const struct seeker *seeker = of;
    if (line->what != NFT_RULE && line->what != NFT_TABLE)
        return;
    for (size_t i = 0; i < seeker->known->count; i++) {
        const char *key = seeker->known->at[i].key, *space = strchr(key, ' ');
        const char *text = line->what == NFT_TABLE ? "table" : text_of(bytes_trimmed(line->text));
        if (space && is_same(key_of(keep(key, (size_t)(space - key)), line), key) &&
            is_same(seeker->known->at[i].value, text))
            state_add(seeker->found, key, text);
    }
}

static void seek_new(void *of, const struct nft_line *line) {
    const struct seeker *seeker = of;
    const char *key = key_of(seeker->interface, line);
    const bool ours = (line->what == NFT_RULE && is_our_text(seeker->interface, line->text)) ||
                      (line->what == NFT_TABLE && bytes_are(line->table, seeker->own_table));
    if (ours && !strstr(seeker->before, print("\n%s\n", key)))
        state_add(seeker->found, key, line->what == NFT_TABLE ? "table" : text_of(bytes_trimmed(line->text)));
}

static void read_listing(const struct text *listing, void (*line)(void *, const struct nft_line *),
                         void *of) {
    read_nft((struct bytes){text_string(listing), listing->size}, line, of);
}

static const char *table_for(const char *interface) {
    char *name = print("wulf_%s", interface);
    for (char *at = name; *at; at++)
        if (strchr(".:@-", *at))
            *at = '_';
    return name;
}

static enum outcome write_owned(const struct state *rules) {
    struct state all = {0};
    struct text text = {0};
    state_add(&all, "boot", boot_id());
    for (size_t i = 0; i < rules->count; i++)
        state_add(&all, rules->at[i].key, rules->at[i].value);
    state_write(&all, &text);
    return store(state_place(), OWNED, text.at, text.size, true);
}

/* What a guard that was ended had just begun to make. */
static void resolve_pending(const struct state *known, const struct text *listing, struct state *found) {
    for (size_t i = 0; i < known->count; i++) {
        if (!starts_with(known->at[i].key, PENDING))
            continue;
        const char *interface = known->at[i].key + strlen(PENDING);
        struct seeker seeker = {interface, NULL, found, known->at[i].value, table_for(interface)};
        read_listing(listing, seek_new, &seeker);
    }
}

enum outcome owned_read(struct owned *owned) {
    struct text text = {0};
    struct state known = {0};
    *owned = (struct owned){0};
    if (tool_path("nft") && rules_list(&owned->listing) != DONE)
        return FAILED;
    if (!is_there(state_place(), OWNED))
        return DONE;
    if (read_own(state_place(), OWNED, &text) != DONE || state_read(&text, &known) != DONE)
        return complain("which rules of the packet filter are ours is not known: %s/%s is damaged",
                        STATE_PLACE, OWNED);
    const char *boot = state_value(&known, "boot");
    if (!boot || !is_same(boot, boot_id()))
        return DONE; /* they went with that boot */
    for (size_t i = 0; i < known.count && !tool_path("nft"); i++)
        if (!is_same(known.at[i].key, "boot") && !strstr(known.at[i].key, " " LEGACY " "))
            return complain("nft is not installed any more, and rules of ours are there");
    struct seeker seeker = {NULL, &known, &owned->rules, NULL, NULL};
    read_listing(&owned->listing, seek_recorded, &seeker);
    resolve_pending(&known, &owned->listing, &owned->rules);
    for (size_t i = 0; i < known.count; i++)
        if (strstr(known.at[i].key, " " LEGACY " "))
            state_add(&owned->rules, known.at[i].key, known.at[i].value);
    return DONE;
}

static bool is_of(const struct item *item, const char *interface) {
    return starts_with(item->key, print("%s ", interface));
}

const char *owned_mode(const struct owned *owned, const char *interface) {
    const char *mode = "tracked";
    for (size_t i = 0; i < owned->rules.count; i++) {
        const struct item *item = &owned->rules.at[i];
        if (!is_of(item, interface))
            continue;
        if (is_same(item->value, "table") || strstr(item->value, "notrack"))
            return "notrack";
        mode = "exempt";
    }
    return mode;
}

bool is_owned(const struct owned *owned, const struct nft_line *line) {
    for (size_t i = 0; i < owned->rules.count; i++) {
        const char *key = owned->rules.at[i].key, *space = strchr(key, ' ');
        if (space && is_same(key_of(keep(key, (size_t)(space - key)), line), key))
            return true;
    }
    return false;
}

struct names owned_interfaces(const struct owned *owned) {
    struct text words = {0};
    for (size_t i = 0; i < owned->rules.count; i++) {
        const char *key = owned->rules.at[i].key, *space = strchr(key, ' ');
        const char *interface = space ? keep(key, (size_t)(space - key)) : key;
        if (!is_word_of(interface, text_string(&words)))
            text_print(&words, "%s ", interface);
    }
    return words_of(text_string(&words));
}

enum outcome owned_forget(void) {
    const struct state none = {0};
    return is_there(state_place(), OWNED) ? write_owned(&none) : DONE;
}

/* --- taking away and making --- */

static enum outcome run_nft(const struct text *commands) {
    if (!commands->size)
        return DONE;
    return RUN_WITH(commands->at, "nft", "-f", "-");
}

/* The rule: TABLE CHAIN and the rest. */
static enum outcome run_legacy(const char *program, const char *how, const char *rule) {
    const char *argv[32];
    const struct names words = words_of(rule);
    if (words.count < 2 || words.count + 6 > 32)
        return complain("%s: a rule with too many words", program);
    const char *const first[] = {program, "-w", "-t", words.at[0], how, words.at[1]};
    memcpy(argv, first, sizeof first);
    for (size_t i = 2; i < words.count; i++)
        argv[4 + i] = words.at[i];
    argv[4 + words.count] = NULL;
    return tool_run(NULL, argv);
}

/* How often a rule stands in its chain, whose policy comes first: what begins otherwise is no listing of it.
 */
static enum outcome count_legacy(const char *program, const char *rule, size_t *count) {
    const struct names words = words_of(rule);
    struct text said = {0};
    struct bytes line;
    if (words.count < 3)
        return complain("%s: a rule with too few words", program);
    const char *table = words.at[0], *chain = words.at[1];
    if (ASK(&said, program, "-w", "-t", table, "-S", chain) != DONE)
        return FAILED;
    struct bytes rest = {text_string(&said), said.size};
    if (!next_line(&rest, &line) || !bytes_begin(line, print("-P %s ", chain)))
        return complain("%s says what are no rules of %s", program, chain);
    const char *listed = print("-A %s", strchr(rule, ' ') + 1);
    for (*count = 0; next_line(&rest, &line);)
        *count += bytes_are(bytes_trimmed(line), listed);
    return DONE;
}

/* Its own word is no proof that it has done it: that is seen in the chain. */
static enum outcome change_legacy(const char *program, bool insert, const char *rule) {
    const char *how = insert ? "-I" : "-D";
    size_t before, after;
    if (explaining)
        return run_legacy(program, how, rule);
    if (count_legacy(program, rule, &before) != DONE)
        return FAILED;
    if (!insert && !before) /* somebody else has taken it away */
        return DONE;
    if (run_legacy(program, how, rule) != DONE || count_legacy(program, rule, &after) != DONE)
        return FAILED;
    return after == (insert ? before + 1 : before - 1)
               ? DONE
               : complain("%s %s exited with 0, but its chain is not as it should be", program, how);
}

/* The word of nft is no proof either. */
static enum outcome require_gone(const struct state *taken) {
    struct text listing = {0};
    struct state left = {0};
    struct seeker seeker = {.known = taken, .found = &left};
    if (explaining || !taken->count)
        return DONE;
    if (rules_list(&listing) != DONE)
        return FAILED;
    read_listing(&listing, seek_recorded, &seeker);
    return left.count ? complain("nft exited with 0, but a rule is still there: %s", left.at[0].value) : DONE;
}

static enum outcome take_away(struct owned *owned, const char *interface) {
    struct text commands = {0};
    struct state rest = {0}, taken = {0};
    for (size_t i = 0; i < owned->rules.count; i++) {
        const struct item *item = &owned->rules.at[i];
        const struct names words = words_of(item->key);
        if (!is_of(item, interface)) {
            state_add(&rest, item->key, item->value);
        } else if (words.count > 2 && is_same(words.at[1], LEGACY)) {
            if (change_legacy(words.at[2], false, item->value) != DONE)
                return FAILED;
        } else if (words.count == KEY_WORDS && is_same(item->value, "table")) {
            text_print(&commands, "delete table %s %s\n", words.at[1], words.at[2]);
            state_add(&taken, item->key, item->value);
        } else if (words.count == KEY_WORDS) {
            text_print(&commands, "delete rule %s %s %s handle %s\n", words.at[1], words.at[2], words.at[4],
                       words.at[5]);
            state_add(&taken, item->key, item->value);
        }
    }
    if (run_nft(&commands) != DONE || require_gone(&taken) != DONE)
        return FAILED;
    owned->rules = rest;
    return explaining ? DONE : write_owned(&rest);
}

struct maker {
    const char *interface;
    struct text *commands, *before;
    const struct owned *owned;
};

static void make_in_chain(void *of, const struct nft_line *line) {
    const struct maker *maker = of;
    if ((line->what == NFT_RULE && is_our_text(maker->interface, line->text)) || line->what == NFT_TABLE)
        text_print(maker->before, "%s\n", key_of(maker->interface, line));
    const bool filters =
        bytes_are(line->family, "ip") || bytes_are(line->family, "ip6") || bytes_are(line->family, "inet");
    const struct nft_line table = {.what = NFT_TABLE,
                                   .family = line->family,
                                   .table = line->table,
                                   .table_handle = line->table_handle,
                                   .handle = line->table_handle};
    if (line->what == NFT_BASE && filters && !is_owned(maker->owned, &table))
        text_print(maker->commands, "insert rule %s %s %s %s \"%s\" accept comment \"wulf\"\n",
                   text_of(line->family), text_of(line->table), text_of(line->chain),
                   line->is_input ? "iifname" : "oifname", maker->interface);
}

/* After the accepts, as untracked packets would fail `ct state` rules. */
static void make_untracked(const char *interface, struct text *commands) {
    text_print(commands,
               "table inet %s {\n"
               "\tchain prerouting { type filter hook prerouting priority raw; policy accept; iifname \"%s\" "
               "notrack "
               "comment \"wulf\"; }\n"
               "\tchain output { type filter hook output priority raw; policy accept; oifname \"%s\" notrack "
               "comment "
               "\"wulf\"; }\n}\n",
               table_for(interface), interface, interface);
}

static enum outcome make_nft(struct owned *owned, const char *interface, bool untracked) {
    struct text commands = {0}, before = {0};
    struct maker maker = {interface, &commands, &before, owned};
    text_word(&before, "\n");
    read_listing(&owned->listing, make_in_chain, &maker);
    if (untracked && strstr(text_string(&owned->listing), print("table inet %s {", table_for(interface))))
        return complain("there is a table inet %s of somebody else", table_for(interface));
    if (untracked)
        make_untracked(interface, &commands);
    if (explaining)
        return run_nft(&commands);
    state_add(&owned->rules, print(PENDING "%s", interface), before.at);
    if (write_owned(&owned->rules) != DONE || run_nft(&commands) != DONE)
        return FAILED;
    owned->rules.count--;
    owned->listing = (struct text){0};
    struct seeker seeker = {interface, NULL, &owned->rules, before.at, table_for(interface)};
    if (rules_list(&owned->listing) != DONE)
        return FAILED;
    const size_t known = owned->rules.count;
    read_listing(&owned->listing, seek_new, &seeker);
    if (commands.size && owned->rules.count == known)
        return complain("nft exited with 0, but no rule for %s is there", interface);
    return write_owned(&owned->rules);
}

static enum outcome make_legacy(struct owned *owned, const char *interface, bool untracked) {
    static const char *const rules[] = {"filter INPUT -i %s -m comment --comment wulf -j ACCEPT",
                                        "filter OUTPUT -o %s -m comment --comment wulf -j ACCEPT",
                                        "raw PREROUTING -i %s -m comment --comment wulf -j CT --notrack",
                                        "raw OUTPUT -o %s -m comment --comment wulf -j CT --notrack"};
    const char *programs[2];
    const size_t count = legacy_programs(programs);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < (untracked ? COUNT(rules) : 2); j++) {
            const char *cut_at = strstr(rules[j], "%s");
            const char *rule =
                print("%s%s%s", keep(rules[j], (size_t)(cut_at - rules[j])), interface, cut_at + 2);
            /* Recorded first: what a guard that is ended here leaves is taken away. */
            state_add(&owned->rules, print("%s " LEGACY " %s %zu", interface, programs[i], j), rule);
            if ((!explaining && write_owned(&owned->rules) != DONE) ||
                change_legacy(programs[i], true, rule) != DONE)
                return FAILED;
        }
    return DONE;
}

enum outcome exempt(const char *interface, const char *mode) {
    const char *programs[2];
    struct owned owned;
    const bool untracked = is_same(mode, "notrack");
    if (!untracked && !is_same(mode, "exempt") && !is_same(mode, "tracked"))
        return complain("the packet filter for %s is tracked, exempt or notrack, not '%s'", interface, mode);
    if (!tool_path("nft") && !legacy_programs(programs))
        return complain("nft is not installed");
    if (owned_read(&owned) != DONE || take_away(&owned, interface) != DONE)
        return FAILED;
    if (is_same(mode, "tracked"))
        return DONE;
    owned.listing = (struct text){0}; /* without what was just taken away */
    if (tool_path("nft") &&
        (rules_list(&owned.listing) != DONE || make_nft(&owned, interface, untracked) != DONE))
        return FAILED;
    return make_legacy(&owned, interface, untracked);
}
