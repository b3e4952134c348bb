#include "guard/journal.h"

#include "guard/answer.h"
#include "guard/device.h"
#include "guard/read/journal.h"
#include "guard/sha256.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char *in_tx(const char *tx, const char *name) { return print("tx/%s/%s", tx, name); }

static struct bytes bytes_of(const struct text *text) {
    return (struct bytes){text_string(text), text->size};
}
static char *kept(struct bytes bytes) { return keep(bytes.at, bytes.size); }

void require_change(const char *name) {
    if (!name || !is_change((struct bytes){name, strlen(name)}))
        fail(EXIT_ERROR, "'%s' is not the name of a change", name ? one_line(name, 80) : "");
}

/* --- about --- */

static void read_devices(struct bytes rest, struct state *devices) {
    struct bytes line, word;
    while (next_line(&rest, &line)) {
        struct bytes name;
        if (cut(&line, '\t', &word) && bytes_are(word, "device") && cut(&line, '\t', &name))
            state_add(devices, kept(name), kept(line));
    }
}

static bool about_in(const char *path, struct about *about) {
    struct text text = {0};
    struct about_text read;
    if (read_own(state_place(), path, &text) != DONE) {
        forgive();
        return false;
    }
    const enum outcome outcome = read_about(bytes_of(&text), &read);
    if (outcome != DONE) {
        about->format = text.size ? read.format : JOURNAL_FORMAT;
        return false;
    }
    *about = (struct about){.known = true,
                            .format = read.format,
                            .number = read.number,
                            .uid = (uid_t)read.uid,
                            .steps = (size_t)read.steps,
                            .owner = kept(read.owner),
                            .boot = kept(read.boot),
                            .at = kept(read.at)};
    read_devices(read.rest, &about->devices);
    return true;
}

/* From its mark outside where the journal is damaged. */
struct about about_of(const char *tx) {
    struct about about = {.owner = "-", .boot = "-", .at = "-", .format = JOURNAL_FORMAT};
    if (!about_in(in_tx(tx, "about"), &about)) {
        const uint64_t format = about.format;
        const bool marked = about_in(print("open.%s", tx), &about);
        if (!marked || format != JOURNAL_FORMAT)
            about.format = format;
    }
    return about;
}

static const char *about_lines(const char *owner, uid_t uid, const struct plan *plan) {
    struct text text = {0};
    text_print(&text, "format\t%d\nnumber\t%llu\nowner\t%s\nuid\t%u\nboot\t%s\nat\t%s\nsteps\t%zu\n",
               JOURNAL_FORMAT, (unsigned long long)(last_number() + 1), owner, (unsigned)uid, boot_id(),
               wall_time(), plan->count);
    struct state devices = {0};
    for (size_t i = 0; i < plan->count; i++) {
        const char *interface = plan->steps[i].interface, *identity = device_identity(interface);
        if (identity && !state_value(&devices, interface)) {
            state_add(&devices, interface, identity);
            text_print(&text, "device\t%s\t%s\n", interface, identity);
        }
    }
    return text.at;
}

enum outcome write_about(const char *tx, const char *owner, uid_t uid, const struct plan *plan) {
    const char *text = about_lines(owner, uid, plan);
    if (store(state_place(), in_tx(tx, "about"), text, strlen(text), false) != DONE)
        return FAILED;
    return store(state_place(), in_tx(tx, "plan"), plan->text, strlen(plan->text), false);
}

/* --- states --- */

/* The state is written before anything that is found here. */
static bool was_begun(const char *tx) {
    return is_there(state_place(), in_tx(tx, "state")) || is_there(state_place(), in_tx(tx, "sums")) ||
           is_there(state_place(), print("open.%s", tx)) || is_there(run_place(), print("deadline.%s", tx)) ||
           names_with(state_place(), print("tx/%s", tx), "saved.").count > 0;
}

static struct tx_state state_beside(const char *tx, const struct about *about) {
    struct tx_state state = {.word = "none", .why = ""};
    struct text text = {0};
    struct bytes word, why;
    const bool has = is_there(state_place(), print("tx/%s", tx));
    if (has && about->format != JOURNAL_FORMAT)
        return (struct tx_state){"other", "it was made by another version of wulf", false};
    if (read_own(state_place(), in_tx(tx, "state"), &text) == DONE &&
        read_tx_state(bytes_of(&text), &word, &why) == DONE)
        return (struct tx_state){kept(word), kept(why), false};
    forgive();
    if (!was_begun(tx))
        return state;
    return (struct tx_state){
        "stuck", has ? "its journal is damaged: its state cannot be read" : "its journal is gone", true};
}

struct tx_state state_of(const char *tx) {
    const struct about about = about_of(tx);
    return state_beside(tx, &about);
}

bool is_over(const char *word) { return is_word_of(word, "none confirmed undone abandoned other"); }

static int by_number(const void *one, const void *other) {
    const struct tx_row *left = one, *right = other;
    if (left->number != right->number)
        return left->number < right->number ? -1 : 1;
    return strcmp(left->name, right->name);
}

static void add_names(struct text *words, struct names names, size_t skip) {
    for (size_t i = 0; i < names.count; i++) {
        const char *name = names.at[i] + skip;
        if (!ends_with(name, ".new") && is_change((struct bytes){name, strlen(name)}) &&
            !is_word_of(name, text_string(words)))
            text_print(words, "%s ", name);
    }
}

static struct tx_rows read_rows(void) {
    struct text words = {0};
    const struct names changes = names_in(state_place(), "tx");
    for (size_t i = 0; i < changes.count; i++)
        if (is_change((struct bytes){changes.at[i], strlen(changes.at[i])}))
            text_print(&words, "%s ", changes.at[i]);
    add_names(&words, names_with(state_place(), ".", "open."),
              strlen("open.")); /* what was wiped has left its mark */
    add_names(&words, names_with(run_place(), ".", "deadline."), strlen("deadline."));
    struct tx_rows rows = {take((changes.count + words.size / 2 + 1) * sizeof(struct tx_row)), 0};
    struct bytes rest = {text_string(&words), words.size}, word;
    while (next_word(&rest, &word)) {
        const char *name = kept(word);
        const struct about about = about_of(name);
        rows.at[rows.count++] = (struct tx_row){about.number, name, state_beside(name, &about)};
    }
    if (rows.count)
        qsort(rows.at, rows.count, sizeof *rows.at, by_number);
    return rows;
}

/* Read once: nobody else changes it while we have the lock. */
static struct {
    bool is;
    struct tx_rows rows;
} read_before;

struct tx_rows journal(void) {
    if (!read_before.is)
        read_before.rows = read_rows();
    read_before.is = true;
    return read_before.rows;
}

static size_t place_of(const char *tx) {
    size_t i = 0;
    while (i < read_before.rows.count && !is_same(read_before.rows.at[i].name, tx))
        i++;
    return i;
}

/* A new one has the highest number, and is the last. */
static void remember(const char *tx) {
    struct tx_rows *rows = &read_before.rows;
    if (!read_before.is)
        return;
    const size_t at = place_of(tx);
    if (at == rows->count) {
        struct tx_row *more = take((rows->count + 1) * sizeof *more);
        if (rows->count)
            memcpy(more, rows->at, rows->count * sizeof *more);
        rows->at = more;
        rows->count++;
    }
    const struct about about = about_of(tx);
    rows->at[at] = (struct tx_row){about.number, keep_text(tx), state_beside(tx, &about)};
}

/* The rows that somebody goes through just now stay as they are: they are replaced. */
static void forget_row(const char *tx) {
    struct tx_rows *rows = &read_before.rows;
    const size_t at = read_before.is ? place_of(tx) : 0;
    if (!read_before.is || at == rows->count)
        return;
    struct tx_row *rest = take(rows->count * sizeof *rest);
    memcpy(rest, rows->at, at * sizeof *rest);
    memcpy(rest + at, rows->at + at + 1, (rows->count - at - 1) * sizeof *rest);
    rows->at = rest;
    rows->count--;
}

/* What a reboot undoes by itself needs no word on the disk before it is confirmed. */
static bool lasts(const char *tx) {
    struct plan plan;
    if (plan_of(tx, &plan) != DONE) {
        forgive();
        return true;
    }
    for (size_t i = 0; i < plan.count; i++)
        if (!plan.steps[i].known || plan.steps[i].known->lasts)
            return true;
    return false;
}

static bool is_synced(const char *tx, const char *word) {
    return is_word_of(word, "confirmed stuck abandoned") ||
           (is_word_of(word, "applying undone") && lasts(tx));
}

enum outcome become(const char *tx, const char *word, const char *why) {
    note("%s%s%s", word, *why ? ": " : "", why);
    const enum outcome outcome =
        store_or_spare(state_place(), in_tx(tx, "state"),
                       print("%s%s%s\n", word, *why ? "\t" : "", one_line(why, 1000)), is_synced(tx, word));
    remember(tx);
    return outcome;
}

struct names open_changes(enum open_which which) {
    const struct tx_rows rows = journal();
    struct names names = {.at = take((rows.count + 1) * sizeof(char *))};
    for (size_t i = rows.count; i-- > 0;) {
        const bool stuck = is_same(rows.at[i].state.word, "stuck");
        if (!is_over(rows.at[i].state.word) && (which == OPEN_ALL || stuck == (which == OPEN_STUCK)))
            names.at[names.count++] = keep_text(rows.at[i].name);
    }
    return names;
}

/* --- files of a change --- */

enum outcome plan_of(const char *tx, struct plan *plan) {
    struct text text = {0};
    if (read_own(state_place(), in_tx(tx, "plan"), &text) != DONE)
        return FAILED;
    return plan_read(bytes_of(&text), plan);
}

/* Of `what` lines: knob, kind, interface, target. */
static enum outcome what_in(struct bytes rest, struct plan *plan) {
    struct text text = {0};
    struct bytes line, word;
    while (next_line(&rest, &line))
        if (cut(&line, '\t', &word) && bytes_are(word, "what"))
            text_print(&text, "%s\t-\n", kept(line));
    return plan_read(bytes_of(&text), plan);
}

enum outcome what_of(const char *tx, struct plan *plan) {
    const struct soundness soundness = soundness_of(tx);
    if (!is_word_of("plan", soundness.damaged) && !is_word_of("sums", soundness.damaged) &&
        !is_word_of("everything", soundness.damaged))
        return plan_of(tx, plan);
    struct text text = {0};
    struct about_text about;
    if (read_own(state_place(), print("open.%s", tx), &text) != DONE ||
        read_about(bytes_of(&text), &about) != DONE)
        return FAILED;
    return what_in(about.rest, plan);
}

enum outcome write_state(const char *tx, const char *name, size_t number, const struct state *state,
                         bool synced) {
    struct text text = {0};
    state_write(state, &text);
    return store(state_place(), in_tx(tx, print("%s.%zu", name, number)), text.at, text.size, synced);
}

/* What is renewed is kept twice until it is sealed: a guard that is ended in between leaves neither the
 * former seal without its state nor the other way round. */
enum outcome renew_saved(const char *tx, size_t number, const struct state *state) {
    return write_state(tx, "renewed", number, state, true) == DONE
               ? write_state(tx, "saved", number, state, true)
               : FAILED;
}

static enum outcome read_state_in(const char *tx, const char *name, struct state *state) {
    struct text text = {0};
    if (read_own(state_place(), in_tx(tx, name), &text) != DONE || state_read(&text, state) != DONE) {
        *state = (struct state){0};
        return FAILED;
    }
    return DONE;
}

enum outcome read_saved(const char *tx, size_t number, struct state *state) {
    return read_state_in(tx, print("saved.%zu", number), state);
}

bool read_after(const char *tx, size_t number, struct state *state) {
    const bool known = read_state_in(tx, print("after.%zu", number), state) == DONE;
    forgive();
    return known;
}

bool read_rest(const char *tx, size_t number, struct state *state) {
    const bool known = read_state_in(tx, print("rest.%zu", number), state) == DONE;
    forgive();
    return known;
}

void discard(const char *tx) {
    discard_tree(state_place(), print("tx/%s", tx), print("gone.%s", tx));
    forget_row(tx);
}

enum outcome give_up_journal(const char *tx) {
    struct text text = {0};
    struct about_text about;
    if (!is_there(state_place(), "tx") && mkdirat(state_place(), "tx", 0700) != 0)
        return FAILED;
    if (!is_there(state_place(), print("tx/%s", tx)) && mkdirat(state_place(), print("tx/%s", tx), 0700) != 0)
        return FAILED;
    read_before.is = false;
    if ((read_own(state_place(), in_tx(tx, "about"), &text) != DONE ||
         read_about(bytes_of(&text), &about) != DONE) &&
        read_own(state_place(), print("open.%s", tx), &text) == DONE &&
        read_about(bytes_of(&text), &about) == DONE) {
        const size_t size = (size_t)(about.rest.at - text.at);
        if (store(state_place(), in_tx(tx, "about"), text.at, size, true) != DONE)
            return FAILED;
    }
    forgive();
    return become(tx, "abandoned", "its values were left as they were");
}

/* --- the seal --- */

static const char *sealed_name(size_t i) {
    return i == 0 ? "about" : i == 1 ? "plan" : print("saved.%zu", i - 1);
}

static enum outcome write_sums(const char *tx, size_t count) {
    struct text sums = {0};
    char hex[65];
    for (size_t i = 0; i < count; i++) {
        struct text text = {0};
        if (read_own(state_place(), in_tx(tx, sealed_name(i)), &text) != DONE)
            return FAILED;
        if (sync_file(state_place(), in_tx(tx, sealed_name(i))) != DONE)
            return FAILED;
        sha256_hex(text_string(&text), text.size, hex);
        text_print(&sums, "%s\t%zu\t%s\n", hex, text.size, sealed_name(i));
    }
    sha256_hex(sums.at, sums.size, hex);
    text_print(&sums, "seal\t%zu\t%s\n", count, hex);
    return store(state_place(), in_tx(tx, "sums"), sums.at, sums.size, true);
}

enum outcome seal(const char *tx, const struct plan *plan) {
    struct text text = {0};
    if (write_sums(tx, plan->count + 2) != DONE || read_own(state_place(), in_tx(tx, "about"), &text) != DONE)
        return FAILED;
    for (size_t i = 0; i < plan->count; i++)
        text_print(&text, "what\t%s\t%s\t%s\t%s\n", plan->steps[i].knob, plan->steps[i].kind_name,
                   plan->steps[i].interface, plan->steps[i].target);
    const enum outcome outcome = store(state_place(), print("open.%s", tx), text.at, text.size, true);
    const struct names renewed = names_with(state_place(), print("tx/%s", tx), "renewed.");
    for (size_t i = 0; outcome == DONE && i < renewed.count; i++)
        remove_own(state_place(), in_tx(tx, renewed.at[i]));
    return outcome;
}

/* Whether it is as it was being sealed. */
static bool is_as_renewed(const char *tx, const char *name, const struct text *text) {
    struct text renewed = {0};
    struct state state = {0};
    const bool is =
        starts_with(name, "saved.") &&
        read_own(state_place(), in_tx(tx, print("renewed.%s", name + strlen("saved."))), &renewed) == DONE &&
        is_same(text_string(&renewed), text_string(text)) && state_read(&renewed, &state) == DONE;
    forgive();
    return is;
}

static bool is_as_sealed(const char *tx, const struct sum_line *line) {
    struct text text = {0};
    char hex[65];
    if (read_own(state_place(), in_tx(tx, kept(line->name)), &text) != DONE) {
        forgive();
        return false;
    }
    sha256_hex(text_string(&text), text.size, hex);
    return (text.size == line->size && bytes_are(line->digest, hex)) ||
           is_as_renewed(tx, kept(line->name), &text);
}

/* Counts what is verified: no answer, or one about something else, is none. */
static void verify(const char *tx, struct bytes lines, struct soundness *soundness, struct text *damaged) {
    for (size_t i = 0; i < soundness->wanted; i++) {
        struct sum_line line;
        if (read_sum_line(&lines, &line) == DONE && bytes_are(line.name, sealed_name(i)) &&
            is_as_sealed(tx, &line))
            soundness->verified++;
        else
            text_print(damaged, "%s%s", damaged->size ? " " : "", sealed_name(i));
    }
}

struct soundness soundness_of(const char *tx) {
    struct soundness soundness = {.damaged = "everything", .untrusted = "its journal is gone", .wanted = 1};
    struct text text = {0}, damaged = {0};
    struct bytes lines;
    uint64_t count;
    if (!is_there(state_place(), print("tx/%s", tx)))
        return soundness;
    const struct about about = about_of(tx);
    if (read_own(state_place(), in_tx(tx, "sums"), &text) != DONE ||
        read_sums(bytes_of(&text), &lines, &count) != SOUND || (about.known && count != about.steps + 2)) {
        forgive();
        text_word(&damaged, "sums");
    } else {
        soundness.wanted = (size_t)count;
        verify(tx, lines, &soundness, &damaged);
    }
    soundness.damaged = text_string(&damaged);
    const bool whole = !is_word_of("sums", soundness.damaged) && !is_word_of("about", soundness.damaged) &&
                       !is_word_of("plan", soundness.damaged);
    soundness.untrusted = whole ? NULL : print("its journal is damaged: %s", soundness.damaged);
    return soundness;
}

bool is_sound(const struct soundness *soundness) {
    return soundness->verified == soundness->wanted && soundness->wanted >= 2 && !*soundness->damaged;
}

bool is_damaged(const struct soundness *soundness, size_t number) {
    return is_word_of(print("saved.%zu", number), soundness->damaged) ||
           is_word_of("sums", soundness->damaged) || is_word_of("everything", soundness->damaged);
}
