/* A parameter of Open MPI in the file that all jobs on the node read. `default` takes the line away. Other
 * lines are not touched; the file goes only if it was not there before and has nothing of others. */
#include "guard/kind/mpi.h"

#include "guard/kind/files.h"
#include "guard/kind/keeping.h"
#include "guard/place.h"
#include "guard/tool.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WHOLE "the whole file"
#define ABSENT "default"

uid_t mpi_caller;

enum outcome mpi_file(const char **path) {
    static const char *known; /* the program takes longer than all else */
    if (known) {
        *path = known;
        return DONE;
    }
    struct text said = {0};
    static const char start[] = "path:sysconfdir:";
    if (ASK(&said, "ompi_info", "--path", "sysconfdir", "--parsable") != DONE)
        return complain("Open MPI is not installed (no ompi_info)");
    struct bytes rest = {text_string(&said), said.size}, line;
    while (next_line(&rest, &line))
        if (bytes_begin(line, start) && line.size > strlen(start) && line.at[strlen(start)] == '/') {
            const char *link =
                print("%s/openmpi-mca-params.conf", keep(line.at + strlen(start), line.size - strlen(start)));
            char *real = realpath(link, NULL); /* a distribution may keep it elsewhere, with a link here */
            char *directory = real ? NULL : realpath(keep(link, (size_t)(strrchr(link, '/') - link)), NULL);
            known = real        ? keep_text(real)
                    : directory ? print("%s/openmpi-mca-params.conf", directory)
                                : link;
            *path = known;
            return DONE;
        }
    return complain("Open MPI is not installed (ompi_info names no directory)");
}

static enum outcome guarded_file(const char **path) {
    if (mpi_file(path) != DONE)
        return FAILED;
    const char *directory = keep(*path, (size_t)(strrchr(*path, '/') - *path));
    return mpi_caller && is_open_to_others(directory)
               ? complain("not through sudo: %s is not root's alone", directory)
               : DONE;
}

static enum outcome read_file(const char **path, struct kept *kept) {
    if (guarded_file(path) != DONE || kept_read(*path, kept) != DONE)
        return FAILED;
    const bool is_text = !kept->content.size || !memchr(kept->content.at, 0, kept->content.size);
    return kept->is != KEPT_LINK && is_text ? DONE : complain("%s is not a file of parameters", *path);
}

static enum outcome save(const struct step *step, struct state *state) {
    const char *path;
    struct kept kept;
    if (read_file(&path, &kept) != DONE)
        return FAILED;
    struct state lines = {0};
    add_lines(&kept, step->target, &lines);
    const struct names names = words_of(step->target);
    for (size_t i = 0; i < names.count; i++) {
        const char *line = state_value(&lines, names.at[i]);
        state_add(state, names.at[i], line ? line : "");
    }
    state_add_flagged(state, WHOLE, kept_word(&kept), ITEM_VOLATILE);
    return DONE;
}

/* On a disk that other nodes may have: whose change it is, so that no other one undoes it. */
static const char *mark(const char *path) {
    char host[65] = "";
    if (place_is_local(path) || gethostname(host, sizeof host - 1) != 0)
        return "";
    return print("# wulf on %s has changed this file: `wulf rollback` there puts it back.\n", host);
}

static void without_marks(struct kept *kept) {
    struct text text = {0};
    struct bytes rest = {text_string(&kept->content), kept->content.size}, line;
    while (next_line(&rest, &line))
        if (!(bytes_begin(line, "# wulf on ") && bytes_find(line, " has changed this file") < line.size))
            text_print(&text, "%s\n", keep(line.at, line.size));
    kept->content = text;
}

static enum outcome write_values(const char *path, struct kept *kept, const struct state *items,
                                 bool marked) {
    const bool was_absent = kept->is != KEPT_FILE;
    without_marks(kept);
    if (marked)
        text_word(&kept->content, mark(path));
    restore_lines(kept, items);
    kept->is = KEPT_FILE;
    if (was_absent) {
        kept->mode = 0644;
        kept->uid = kept->gid = UINT32_MAX;
    }
    return kept_write(path, kept);
}

static enum outcome put(const struct step *step) {
    const char *path;
    struct kept kept;
    if (read_file(&path, &kept) != DONE)
        return FAILED;
    struct state items = {0};
    const struct names names = words_of(step->target), values = words_of(step->value);
    for (size_t i = 0; i < names.count && values.count; i++) {
        const char *value = values.at[i < values.count ? i : values.count - 1];
        const bool none = is_same(value, ABSENT);
        state_add_flagged(&items, names.at[i], print("%s = %s", names.at[i], value), none ? ITEM_ABSENT : 0);
    }
    return write_values(path, &kept, &items, true);
}

static bool has_same_lines(struct kept one, struct kept other) {
    without_marks(&one);
    without_marks(&other);
    return is_same(text_string(&one.content), text_string(&other.content));
}

/* Whether the lines of others, and of other steps, are the same. */
static bool has_same_rest(struct kept one, struct kept other, const char *target) {
    struct state gone = {0};
    const struct names names = words_of(target);
    for (size_t i = 0; i < names.count; i++)
        state_add_flagged(&gone, names.at[i], "", ITEM_ABSENT);
    restore_lines(&one, &gone);
    restore_lines(&other, &gone);
    return has_same_lines(one, other);
}

static enum outcome restore(const struct step *step, const struct state *items, const struct state *before,
                            const struct state *after) {
    const char *path, *whole = state_value(before, WHOLE), *made = state_value(after, WHOLE);
    struct kept kept, was;
    struct state lines = {0};
    if (!whole || kept_parse(whole, &was) != DONE || read_file(&path, &kept) != DONE)
        return FAILED;
    const bool same_rest = has_same_rest(kept, was, step->target);
    /* Nobody else has changed it, no other step either, nor in between where it is of two changes. */
    if (!made || (kept_is(&kept, made) && has_items(&was, before) && same_rest))
        return kept_write(path, &was);
    for (size_t i = 0; i < items->count; i++)
        state_add_flagged(&lines, items->at[i].key, items->at[i].value,
                          *items->at[i].value ? 0 : ITEM_ABSENT);
    struct kept made_back = kept;
    restore_lines(&made_back, &lines);
    if (has_same_lines(made_back, was))
        return kept_write(path, &was);
    if (!same_rest && !kept_is(&kept, made))
        say_left(step, print("other lines of %s", path));
    return write_values(path, &kept, &lines, false);
}

static enum outcome get(const struct step *step, struct text *value) {
    struct state state = {0};
    if (save(step, &state) != DONE)
        return FAILED;
    const struct names names = words_of(step->target);
    for (size_t i = 0; i < names.count; i++) {
        const char *line = state_value(&state, names.at[i]), *last = line ? strrchr(line, '\n') : NULL;
        const char *sign = line ? strchr(last ? last : line, '=') : NULL;
        struct bytes text =
            sign ? (struct bytes){sign + 1, strlen(sign + 1)} : (struct bytes){ABSENT, strlen(ABSENT)};
        text = bytes_trimmed(text);
        text_print(value, "%s%s", i ? " " : "", text.size ? keep(text.at, text.size) : ABSENT);
    }
    return DONE;
}

/* All are in one file. */
static bool shares(const struct step *step, const struct step *other) {
    (void)step;
    (void)other;
    return true;
}

static bool names_item(const struct step *step, const char *key) {
    return is_same(key, WHOLE) || is_word_of(key, step->target);
}

const struct kind kind_mpi_parameter = {
    .save = save, .put = put, .restore = restore, .get = get, .shares = shares, .names = names_item};
