/* A file that lasts. VALUE: `absent`, `link:TARGET`, or `file:MODE:CONTENT` with the content in base64. Of a file of lines
 * NAME = VALUE each line is an item: those of others stay, whatever becomes of ours. */
#include "guard/kind.h"
#include "guard/kind/keeping.h"
#include "guard/sha256.h"
#include "guard/tool.h"

#include <string.h>

#define WHOLE "the whole file"

static enum outcome save(const struct step *step, struct state *state) {
    struct kept kept;
    if (kept_read(step->target, &kept) != DONE)
        return FAILED;
    if (ends_with(step->target, ".conf") && has_lines(&kept)) {
        state_add_flagged(state, WHOLE, kept_word(&kept), ITEM_VOLATILE);
        add_lines(&kept, NULL, state);
    } else {
        state_add(state, step->target, kept_word(&kept));
    }
    return DONE;
}

static enum outcome put(const struct step *step) {
    struct kept kept, now;
    if (kept_parse_plan(step->value, &kept) != DONE)
        return FAILED;
    if (!explaining) {
        if (kept_read(step->target, &now) != DONE)
            return FAILED;
        if (kept.is == KEPT_FILE && now.is == KEPT_FILE) { /* whose it was */
            kept.uid = now.uid;
            kept.gid = now.gid;
        }
    }
    return kept_write(step->target, &kept);
}

static bool has_only_ours(const struct kept *kept) {
    for (size_t i = 0; i < kept->content.size; i++)
        if (!strchr(" \t\n", kept->content.at[i]))
            return false;
    return true;
}

static enum outcome restore_by_lines(const struct step *step, const struct state *items, const struct kept *was) {
    struct kept now;
    if (kept_read(step->target, &now) != DONE)
        return FAILED;
    if (now.is != KEPT_FILE || !has_lines(&now)) {
        now = *was;
        now.content = (struct text){0};
    }
    restore_lines(&now, items);
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
    const char *value = whole ? whole : state_value(items, step->target);
    struct kept kept, now;
    if (!value)
        return DONE;
    if (kept_parse(value, &kept) != DONE || kept_read(step->target, &now) != DONE)
        return FAILED;
    const char *made = whole ? state_value(after, WHOLE) : NULL;
    if (whole && made && !is_same(kept_word(&now), made))
        return restore_by_lines(step, items, &kept);
    return kept_write(step->target, &kept);
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

const struct kind kind_stored = {.save = save, .put = put, .restore = restore, .get = get, .removes = removes};
