#include "guard/answer.h"

#include "guard/fault.h"
#include "guard/file.h"
#include "guard/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOG_BYTES = 262144, LINE = 4096 };

static struct text answer;

LIKE_PRINTF_LIST(1) static char *formatted(const char *format, va_list list) {
    char line[LINE];
    const int size = vsnprintf(line, sizeof line, format, list);
    return size < 0 ? keep_text("") : keep(line, (size_t)size < sizeof line ? (size_t)size : sizeof line - 1);
}

void say_line(const char *format, ...) {
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    const int size = vsnprintf(NULL, 0, format, list);
    va_end(list);
    if (size >= 0) {
        char *line = take((size_t)size + 1);
        if (vsnprintf(line, (size_t)size + 1, format, again) == size)
            text_print(&answer, "%s\n", line);
    }
    va_end(again);
}

void say_fields(const char *const fields[]) {
    for (size_t i = 0; fields[i]; i++)
        text_print(&answer, "%s%s", i ? "\t" : "", one_line(fields[i], SIZE_MAX / 4));
    text_word(&answer, "\n");
}

size_t answer_size(void) { return answer.size; }
const char *answer_from(size_t size) { return answer.at ? answer.at + size : ""; }

void answer_cut(size_t size) {
    answer.size = size;
    if (answer.at)
        answer.at[size] = 0;
}

void finish(int code) {
    release();
    const char *at = text_string(&answer);
    for (size_t left = answer.size; left;) {
        const ssize_t put = write(STDOUT_FILENO, at, left);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0) /* who asked does not hear it: it is not taken for done */
            _exit(code ? code : EXIT_ERROR);
        at += put;
        left -= (size_t)put;
    }
    _exit(code);
}

void fail(int code, const char *format, ...) {
    va_list list;
    va_start(list, format);
    const char *words = formatted(format, list);
    va_end(list);
    SAY("error", words);
    note("error: %s", words);
    finish(code);
}

static const char *noted_verb = "-", *noted_change = "-";
static bool silent;

void note_about(const char *verb, const char *change) {
    noted_verb = verb;
    noted_change = change;
}

void note_nothing(void) { silent = true; }

void note(const char *format, ...) {
    va_list list;
    va_start(list, format);
    const char *words = one_line(formatted(format, list), LINE);
    va_end(list);
    if (silent || state_place() < 0)
        return;
    const int file = open_own(state_place(), "log", O_WRONLY | O_CREAT | O_APPEND);
    if (file >= 0) {
        const char *line = print("%s %s %s\n", wall_time(), noted_change, words);
        if (write(file, line, strlen(line)) < 0)
            errno = 0; /* the journal is what counts: a log that cannot be written stops nothing */
        close(file);
    }
    fault_point(noted_verb, words);
}

void note_rotate(void) {
    struct stat about;
    if (fstatat(state_place(), "log", &about, AT_SYMLINK_NOFOLLOW) == 0 && about.st_size > LOG_BYTES &&
        renameat(state_place(), "log", state_place(), "log.1") != 0)
        errno = 0;
}
