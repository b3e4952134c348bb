/* A file that lasts. VALUE: `made:...`, whose text is made here (see made.c), `absent`, `link:TARGET`, or
 * `file:MODE:CONTENT` with the content in base64, which root alone may have written. Of a
 * file of lines NAME = VALUE each line is an item: those of others stay, whatever becomes of ours. */
#include "guard/answer.h"
#include "guard/kind.h"
#include "guard/kind/keeping.h"
#include "guard/kind/made.h"
#include "guard/kind/mpi.h"
#include "guard/sha256.h"
#include "guard/tool.h"

#include <string.h>

#define WHOLE "the whole file"
#define LINES "lines"

static enum outcome save(const struct step *step, struct state *state) {
    struct kept kept;
    if (kept_read(step->target, &kept) != DONE)
        return FAILED;
    if (ends_with(step->target, ".conf") && has_lines(&kept)) {
        state_add_flagged(state, WHOLE, kept_word(&kept), ITEM_VOLATILE);
        state_add(state, step->target, kept.is == KEPT_FILE ? LINES : kept_word(&kept));
        add_lines(&kept, NULL, state);
    } else {
        state_add(state, step->target, kept_word(&kept));
    }
    return DONE;
}

/* A file that was not there before stays with the lines of others in it. */
static bool is_others(const struct item *wanted, const struct state *before, const struct state *after,
                      const struct state *now) {
    const char *is = state_value(now, wanted->key);
    bool some = false;
    if (*wanted->key != '/' || !starts_with(wanted->value, "absent:") || !is || !is_same(is, LINES))
        return false;
    for (size_t i = 0; i < now->count; i++) {
        const char *made = state_value(after, now->at[i].key), *was = state_value(before, now->at[i].key);
        const bool is_line = *now->at[i].key != '/' && !is_same(now->at[i].key, WHOLE);
        if (is_line && made && is_same(made, now->at[i].value) && !(was && is_same(was, made)))
            return false;
        some = some || is_line;
    }
    return some;
}

static enum outcome put(const struct step *step) {
    struct kept kept, now;
    if ((is_made(step->value) ? made_file(step, &kept) : kept_parse_plan(step->value, &kept)) != DONE)
        return FAILED;
    if (!explaining) {
        if (kept_read(step->target, &now) != DONE)
            return FAILED;
        if (mpi_caller && !is_ours_or_absent(step->target, &now))
            return complain("%s is somebody else's file", step->target);
        if (mpi_caller &&
            (made_within_scope(step->target, &now) != DONE || made_within_scope(step->target, &kept) != DONE))
            return FAILED;
        if (kept.is == KEPT_FILE && now.is == KEPT_FILE) { /* whose it was */
            kept.uid = now.uid;
            kept.gid = now.gid;
        }
    }
    if (explaining && is_made(step->value) && kept.is == KEPT_FILE)
        say_line("%.*s", (int)kept.content.size - 1, text_string(&kept.content));
    return kept_write(step->target, &kept);
}

static bool has_only_ours(const struct kept *kept) {
    for (size_t i = 0; i < kept->content.size; i++)
        if (!strchr(" \t\n", kept->content.at[i]))
            return false;
    return true;
}

static enum outcome restore_by_lines(const struct step *step, const struct state *items,
                                     const struct kept *was) {
    struct kept now;
    if (kept_read(step->target, &now) != DONE)
        return FAILED;
    if (now.is != KEPT_FILE || !has_lines(&now)) {
        now = *was;
        now.content = (struct text){0};
    }
    struct state lines = {0};
    for (size_t i = 0; i < items->count; i++)
        if (*items->at[i].key != '/')
            state_add_flagged(&lines, items->at[i].key, items->at[i].value, items->at[i].flags);
    restore_lines(&now, &lines);
    say_left(step, print("other lines of %s", step->target));
    if (was->is == KEPT_ABSENT && has_only_ours(&now))
        return kept_write(step->target, was);
    now.is = KEPT_FILE;
    now.mode = now.mode ? now.mode : 0644;
    return kept_write(step->target, &now);
}

static enum outcome restore(const struct step *step, const struct state *items, const struct state *before,
                            const struct state *after) {
    const char *whole = state_value(before, WHOLE);
    const char *file = state_value(before, step->target),
               *value = whole && is_same(file ? file : LINES, LINES) ? whole : file;
    struct kept kept, now;
    if (!value)
        return DONE;
    if (kept_parse(value, &kept) != DONE || kept_read(step->target, &now) != DONE)
        return FAILED;
    const char *made = whole ? state_value(after, WHOLE) : NULL;
    /* Of two changes as one the whole file is that before the second, where somebody has written to it in
     * between. */
    if (whole && made && (!kept_is(&now, made) || !has_items(&kept, before) || !has_items(&kept, items)))
        return restore_by_lines(step, items, &kept);
    return kept_write(step->target, &kept);
}

enum outcome stored_within_scope(const struct step *step, const struct state *before) {
    const char *whole = state_value(before, WHOLE),
               *value = whole ? whole : state_value(before, step->target);
    struct kept was, now;
    if (!value || kept_parse(value, &was) != DONE || kept_read(step->target, &now) != DONE)
        return FAILED;
    return made_within_scope(step->target, &now) == DONE ? made_within_scope(step->target, &was) : FAILED;
}

/* What it is: a link's target, or the beginning of the content's SHA-256. */
static enum outcome get(const struct step *step, struct text *value) {
    struct kept kept;
    if (kept_read(step->target, &kept) != DONE)
        return FAILED;
    char hex[65];
    sha256_hex(text_string(&kept.content), kept.content.size, hex);
    if (kept.is == KEPT_LINK)
        text_print(value, "link:%s", kept.link);
    else
        text_print(value, "%s", kept.is == KEPT_ABSENT ? "absent" : print("%.12s", hex));
    return DONE;
}

static bool removes(const char *key) { return *key != '/'; }

const struct kind kind_stored = {
    .save = save, .put = put, .restore = restore, .get = get, .removes = removes, .is_others = is_others};
