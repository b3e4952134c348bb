#include "guard/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK = 1 << 20 };

static struct {
    char *at;
    size_t left;
} memory;

void cannot_go_on(const char *what) {
    const size_t size = strlen(what);
    /* Who does not read what is said here must not keep the lock. */
    if (syscall(SYS_close_range, 3U, ~0U, 0U) != 0)
        for (int file = 3; file < 1024; file++)
            close(file);
    /* Nothing can be done for who does not hear this: the exit code says it, too. */
    if (write(STDOUT_FILENO, "error\tcannot go on: ", 20) < 0 || write(STDOUT_FILENO, what, size) < 0 ||
        write(STDOUT_FILENO, "\n", 1) < 0)
        _exit(EXIT_ERROR);
    _exit(EXIT_ERROR);
}

static _Noreturn void no_memory(void) { cannot_go_on("there is no memory"); }

void *take(size_t size) {
    if (size > SIZE_MAX / 2)
        no_memory();
    size = (size + 15) & ~(size_t)15;
    if (size > memory.left) {
        const size_t room = size > CHUNK ? size : CHUNK;
        void *more = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (more == MAP_FAILED)
            no_memory();
        memory.at = more;
        memory.left = room;
    }
    char *taken = memory.at;
    memory.at += size;
    memory.left -= size;
    return taken;
}

char *keep(const char *at, size_t size) {
    char *kept = take(size + 1);
    if (size)
        memcpy(kept, at, size);
    return kept;
}

char *keep_text(const char *text) { return keep(text, strlen(text)); }

LIKE_PRINTF_LIST(1) static char *print_list(const char *format, va_list list) {
    va_list again;
    va_copy(again, list);
    const int size = vsnprintf(NULL, 0, format, list);
    if (size < 0)
        no_memory();
    char *text = take((size_t)size + 1);
    if (vsnprintf(text, (size_t)size + 1, format, again) != size)
        no_memory();
    va_end(again);
    return text;
}

char *print(const char *format, ...) {
    va_list list;
    va_start(list, format);
    char *text = print_list(format, list);
    va_end(list);
    return text;
}

void text_add(struct text *text, const char *at, size_t size) {
    if (size >= text->room - text->size || !text->at) {
        const size_t room = 2 * (text->size + size) + 64;
        char *more = take(room);
        if (text->size)
            memcpy(more, text->at, text->size);
        text->at = more;
        text->room = room;
    }
    if (size)
        memcpy(text->at + text->size, at, size);
    text->size += size;
    text->at[text->size] = 0;
}

void text_word(struct text *text, const char *word) { text_add(text, word, strlen(word)); }

void text_print(struct text *text, const char *format, ...) {
    va_list list;
    va_start(list, format);
    text_word(text, print_list(format, list));
    va_end(list);
}

const char *text_string(const struct text *text) { return text->at ? text->at : ""; }

char *one_line(const char *text, size_t most) {
    const size_t size = strnlen(text, most);
    char *line = keep(text, size);
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
            line[i] = ' ';
    return line;
}

char *replaced(const char *text, const char *what, const char *with) {
    struct text all = {0};
    for (const char *here; (here = strstr(text, what)) != NULL; text = here + strlen(what)) {
        text_add(&all, text, (size_t)(here - text));
        text_word(&all, with);
    }
    text_word(&all, text);
    return all.at;
}

bool starts_with(const char *text, const char *start) { return strncmp(text, start, strlen(start)) == 0; }

bool ends_with(const char *text, const char *end) {
    const size_t size = strlen(text), wanted = strlen(end);
    return size >= wanted && strcmp(text + size - wanted, end) == 0;
}

bool is_same(const char *one, const char *other) { return strcmp(one, other) == 0; }

bool is_word_of(const char *word, const char *words) {
    const size_t size = strlen(word);
    for (const char *at = words; *at;) {
        const size_t here = strcspn(at, " ");
        if (here == size && strncmp(at, word, size) == 0)
            return true;
        at += here;
        at += strspn(at, " ");
    }
    return false;
}

static const char *complained;

enum outcome complain(const char *format, ...) {
    va_list list;
    va_start(list, format);
    complained = print_list(format, list);
    va_end(list);
    return FAILED;
}

const char *complaint(const char *otherwise) {
    const char *why = complained && *complained ? complained : otherwise;
    complained = NULL;
    return why;
}

void forgive(void) { complained = NULL; }

int64_t now_ms(void) {
    struct timespec now;
    if (clock_gettime(CLOCK_BOOTTIME, &now) != 0)
        return INT64_MAX /
               2; /* everything is overdue, and nothing is kept on the word of a clock that is not there */
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t now_s(void) { return now_ms() / 1000; }

const char *boot_id(void) {
    static char id[64];
    if (id[0])
        return id;
    const int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    const ssize_t got = file < 0 ? -1 : read(file, id, sizeof id - 1);
    if (file >= 0)
        close(file);
    for (ssize_t i = 0; i < got; i++)
        if (id[i] == '\n')
            id[i] = 0;
    if (got <= 0) /* or everything would be of an earlier boot */
        cannot_go_on("which boot this is cannot be read");
    return id;
}

const char *wall_time(void) {
    const time_t now = time(NULL);
    struct tm parts;
    char *text = take(32);
    if (!gmtime_r(&now, &parts) || !strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &parts))
        return "-";
    return text;
}

void wait_ms(int ms) {
    struct timespec left = {ms / 1000, (long)(ms % 1000) * 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
}
