#include "guard/kind/files.h"

#include "guard/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void add_name(struct names *names, size_t *room, char *name) {
    if (names->count == *room) {
        *room = *room ? 2 * *room : 16;
        char **more = take(*room * sizeof *more);
        if (names->count)
            memcpy(more, names->at, names->count * sizeof *more);
        names->at = more;
    }
    names->at[names->count++] = name;
}

static void find_files(const char *before, const char *rest, struct names *found, size_t *room) {
    const char *slash = strchr(rest, '/');
    const char *part = slash ? keep(rest, (size_t)(slash - rest)) : rest;
    if (!strpbrk(part, "*?[")) {
        const char *path = print("%s/%s", before, part);
        if (slash)
            find_files(path, slash + 1, found, room);
        else if (access(path, F_OK) == 0)
            add_name(found, room, keep_text(path));
        else if (errno != ENOENT && errno != ENOTDIR && errno != EACCES) /* who explains may not see all */
            found->are_some = true;
        return;
    }
    /* A link such as those of /sys/class/net is followed. */
    const struct names names = names_in(AT_FDCWD, print("%s/.", *before ? before : ""));
    found->are_some = found->are_some || names.are_some;
    for (size_t i = 0; i < names.count; i++)
        if (fnmatch(part, names.at[i], 0) == 0) {
            const char *path = print("%s/%s", before, names.at[i]);
            if (slash)
                find_files(path, slash + 1, found, room);
            else
                add_name(found, room, keep_text(path));
        }
}

struct names files_of(const char *pattern) {
    struct names found = {0};
    size_t room = 0;
    if (*pattern == '/')
        find_files("", pattern + 1, &found, &room);
    return found;
}

enum outcome all_files_of(const char *pattern, struct names *files) {
    *files = files_of(pattern);
    return files->are_some ? complain("not all of %s can be listed", pattern) : DONE;
}

bool files_absent(const char *patterns) {
    const struct names words = words_of(patterns);
    if (access("/sys/kernel", F_OK) != 0) /* nothing is mounted there */
        return false;
    for (size_t i = 0; i < words.count; i++) {
        const struct names files = files_of(words.at[i]);
        if (files.count || files.are_some)
            return false;
    }
    return true;
}

struct names words_of(const char *text) {
    struct names words = {0};
    size_t room = 0;
    struct bytes rest = {text, strlen(text)}, word;
    while (next_word(&rest, &word))
        add_name(&words, &room, keep(word.at, word.size));
    return words;
}

enum outcome file_value(const char *path, char **value) {
    if (read_value(path, value) != DONE)
        return FAILED;
    char *open = strchr(*value, '['), *close = open ? strchr(open, ']') : NULL;
    if (close)
        *value = keep(open + 1, (size_t)(close - open - 1));
    for (char *at = *value; *at; at++)
        if (*at == '\t')
            *at = ' ';
    return DONE;
}

/* Of a CPU that is offline the files of its frequency stay, and can neither be read nor written (EBUSY): it
 * must not keep the others from being seen. */
static bool is_offline(const char *path) {
    char byte;
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const bool is_busy = file >= 0 && read(file, &byte, 1) < 0 && errno == EBUSY;
    if (file >= 0)
        close(file);
    return is_busy;
}

enum outcome files_save(const char *patterns, struct state *state) {
    const struct names words = words_of(patterns);
    for (size_t i = 0; i < words.count; i++) {
        struct names files;
        if (all_files_of(words.at[i], &files) != DONE)
            return FAILED;
        for (size_t j = 0; j < files.count; j++) {
            char *value;
            if (file_value(files.at[j], &value) == DONE)
                state_add(state, files.at[j], value);
            else if (!is_offline(files.at[j]))
                return FAILED;
        }
    }
    return state->count ? DONE : complain("there is no %s", patterns);
}

enum outcome files_put(const char *patterns, const char *values) {
    const struct names words = words_of(patterns), each = words_of(values);
    for (size_t i = 0; i < words.count; i++) {
        struct names files;
        if (all_files_of(words.at[i], &files) != DONE)
            return FAILED;
        const char *value = words.count == 1 ? values : each.count > i ? each.at[i] : each.at[each.count - 1];
        for (size_t j = 0; j < files.count; j++)
            if (set_value(files.at[j], value) != DONE && !is_offline(files.at[j]))
                return FAILED;
    }
    return DONE;
}

enum outcome files_restore(const struct step *step, const struct state *items, const struct state *before,
                           const struct state *after) {
    (void)step;
    (void)before;
    (void)after;
    enum outcome outcome = DONE;
    for (size_t i = 0; i < items->count; i++) {
        char *value;
        if (file_value(items->at[i].key, &value) == DONE && is_same(value, items->at[i].value))
            continue;
        forgive();
        if (set_value(items->at[i].key, items->at[i].value) != DONE)
            outcome = FAILED;
    }
    return outcome;
}

static void add_once(struct names *values, size_t *room, char *value) {
    for (size_t i = 0; i < values->count; i++)
        if (is_same(values->at[i], value))
            return;
    add_name(values, room, value);
}

static int by_text(const void *one, const void *other) {
    return strcmp(*(char *const *)one, *(char *const *)other);
}

enum outcome files_get(const char *patterns, struct text *value) {
    const struct names words = words_of(patterns);
    for (size_t i = 0; i < words.count; i++) {
        struct state state = {0};
        if (files_save(words.at[i], &state) != DONE)
            return FAILED;
        struct names values = {0};
        size_t room = 0;
        for (size_t j = 0; j < state.count; j++)
            add_once(&values, &room, keep_text(state.at[j].value));
        qsort(values.at, values.count, sizeof *values.at, by_text);
        for (size_t j = 0; j < values.count; j++)
            text_print(value, "%s%s", j ? "," : i ? " " : "", values.at[j]);
    }
    return DONE;
}
