#include "guard/kind/keeping.h"

#include "guard/answer.h"
#include "guard/read/base64.h"
#include "guard/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *directory_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash && slash > path ? keep(path, (size_t)(slash - path)) : keep_text("/");
}

/* The uppermost directory that is not there; "" where all are. */
static const char *missing(const char *directory) {
    const char *uppermost = "";
    for (char *path = keep_text(directory); strlen(path) > 1; *strrchr(path, '/') = 0) {
        struct stat about;
        if (stat(path, &about) == 0)
            break;
        uppermost = keep_text(path);
    }
    return uppermost;
}

/* Of this node and this process: the directory may be one that other nodes write to, too. */
static char *new_name(const char *path, pid_t pid) {
    char host[65] = "";
    if (gethostname(host, sizeof host - 1) != 0)
        host[0] = 0;
    return print("%s.wulf.%s.%d", path, host, (int)pid);
}

/* What a guard of this node was writing when it was ended. */
static void clear(const char *path) {
    const char *start = new_name(path, 0);
    const size_t size = strlen(start) - 1;
    const char *base = strrchr(start, '/') + 1;
    const struct names names =
        names_with(AT_FDCWD, directory_of(path), keep(base, size - (size_t)(base - start)));
    for (size_t i = 0; i < names.count; i++) {
        const char *pid = names.at[i] + (size - (size_t)(base - start));
        const struct bytes digits = {pid, strlen(pid)};
        uint64_t number;
        if (bytes_number(digits, INT32_MAX, &number) && access(print("/proc/%s", pid), F_OK) != 0)
            unlink(print("%s/%s", directory_of(path), names.at[i]));
    }
}

/* What is told of a file is of what is read, should somebody have put a link there in between. */
static enum outcome read_regular(const char *path, struct stat *about, struct text *content) {
    const int file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file >= 0 && (fstat(file, about) != 0 || !S_ISREG(about->st_mode))) {
        close(file);
        return complain("%s is not a file", path);
    }
    return read_opened(file, path, content);
}

enum outcome kept_read(const char *path, struct kept *kept) {
    *kept = (struct kept){.link = ""};
    if (*path != '/' || strstr(path, "/../") || ends_with(path, "/"))
        return complain("%s is not the path of a file", path);
    clear(path);
    struct stat about;
    if (lstat(path, &about) != 0) {
        if (errno != ENOENT && errno != ENOTDIR)
            return complain("%s: %s", path, strerror(errno));
        kept->link = missing(directory_of(path));
        return DONE;
    }
    if (S_ISLNK(about.st_mode)) {
        char target[4096];
        const ssize_t size = readlink(path, target, sizeof target);
        if (size < 0 || size == (ssize_t)sizeof target)
            return complain("%s: its link cannot be read", path);
        kept->is = KEPT_LINK;
        kept->link = keep(target, (size_t)size);
        return DONE;
    }
    if (!S_ISREG(about.st_mode))
        return complain("%s is not a file", path);
    if (read_regular(path, &about, &kept->content) != DONE)
        return FAILED;
    kept->is = KEPT_FILE;
    kept->mode = about.st_mode & 07777;
    kept->uid = about.st_uid;
    kept->gid = about.st_gid;
    kept->seconds = about.st_mtim.tv_sec;
    kept->nanoseconds = about.st_mtim.tv_nsec;
    return DONE;
}

char *kept_word(const struct kept *kept) {
    if (kept->is == KEPT_ABSENT)
        return print("absent:%s", kept->link);
    if (kept->is == KEPT_LINK)
        return print("link:%s", kept->link);
    struct text text = {0};
    text_print(&text, "file:%o,%u,%u:%lld.%09lld:", kept->mode, kept->uid, kept->gid,
               (long long)kept->seconds, (long long)kept->nanoseconds);
    base64_write((struct bytes){kept->content.at, kept->content.size}, &text);
    return text.at;
}

bool kept_is(const struct kept *kept, const char *word) {
    return is_same(kept_word(kept), word) || (kept->is == KEPT_ABSENT && starts_with(word, "absent:"));
}

static enum outcome content_of(struct bytes base64, struct kept *kept) {
    char *plain = take(base64.size + 1);
    size_t size;
    if (base64_read(base64, plain, &size) != DONE)
        return complain("the content is not base64");
    text_add(&kept->content, plain, size);
    return DONE;
}

enum outcome kept_parse(const char *word, struct kept *kept) {
    *kept = (struct kept){.link = ""};
    if (starts_with(word, "absent:") || starts_with(word, "link:")) {
        kept->is = *word == 'l' ? KEPT_LINK : KEPT_ABSENT;
        kept->link = strchr(word, ':') + 1;
        return DONE;
    }
    long long seconds, nanoseconds;
    int size = 0;
    kept->is = KEPT_FILE;
    if (sscanf(word, "file:%o,%u,%u:%lld.%lld:%n", &kept->mode, &kept->uid, &kept->gid, &seconds,
               &nanoseconds, &size) != 5 ||
        !size)
        return complain("what was kept of a file cannot be read");
    kept->seconds = seconds;
    kept->nanoseconds = nanoseconds;
    return content_of((struct bytes){word + size, strlen(word + size)}, kept);
}

enum outcome kept_parse_plan(const char *word, struct kept *kept) {
    *kept = (struct kept){.link = "", .seconds = -1, .uid = UINT32_MAX, .gid = UINT32_MAX};
    if (is_same(word, "absent"))
        return DONE;
    if (starts_with(word, "link:")) {
        kept->is = KEPT_LINK;
        kept->link = word + strlen("link:");
        return DONE;
    }
    kept->is = KEPT_FILE;
    struct bytes rest = {word, strlen(word)}, piece;
    if (!cut(&rest, ':', &piece) || !bytes_are(piece, "file") || !cut(&rest, ':', &piece) || piece.size != 3)
        return complain("a file is absent, link:TARGET or file:MODE:CONTENT");
    for (size_t i = 0; i < 3; i++) {
        if (piece.at[i] < '0' || piece.at[i] > '7')
            return complain("a file is absent, link:TARGET or file:MODE:CONTENT");
        kept->mode = kept->mode * 8 + (unsigned)(piece.at[i] - '0');
    }
    return content_of(rest, kept);
}

static enum outcome make_directories(const char *directory) {
    const mode_t before = umask(022);
    enum outcome outcome = DONE;
    for (char *slash = keep_text(directory), *path = slash; outcome == DONE && slash;) {
        slash = strchr(slash + 1, '/');
        const char *part = slash ? keep(path, (size_t)(slash - path)) : path;
        if (mkdir(part, 0755) != 0 && errno != EEXIST)
            outcome = complain("%s: %s", part, strerror(errno));
    }
    umask(before);
    return outcome;
}

static enum outcome flush_directory(const char *directory) {
    const int place = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool good = place >= 0 && fsync(place) == 0;
    if (place >= 0)
        close(place);
    return good ? DONE : complain("%s: %s", directory, strerror(errno));
}

static enum outcome fill(int file, const struct kept *kept) {
    const char *at = text_string(&kept->content);
    for (size_t left = kept->content.size; left;) {
        const ssize_t put = write(file, at, left);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return FAILED;
        at += put;
        left -= (size_t)put;
    }
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {kept->seconds, kept->nanoseconds}};
    if ((kept->uid != UINT32_MAX || kept->gid != UINT32_MAX) && fchown(file, kept->uid, kept->gid) != 0)
        return FAILED;
    if (fchmod(file, kept->mode) != 0 || (kept->seconds >= 0 && futimens(file, times) != 0) ||
        fsync(file) != 0)
        return FAILED;
    return DONE;
}

static enum outcome write_file(const char *path, const struct kept *kept) {
    const char *made = new_name(path, getpid());
    const int file = open(made, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0)
        return complain("%s: %s", made, strerror(errno));
    enum outcome outcome = fill(file, kept);
    const int why = errno;
    if (close(file) != 0 || outcome != DONE || rename(made, path) != 0) {
        outcome = complain("%s: %s", path, strerror(outcome == DONE ? errno : why));
        unlink(made);
    }
    return outcome;
}

static enum outcome write_link(const char *path, const struct kept *kept) {
    const char *made = new_name(path, getpid());
    if (symlink(kept->link, made) == 0 && rename(made, path) == 0)
        return DONE;
    const enum outcome outcome = complain("%s: %s", path, strerror(errno));
    unlink(made);
    return outcome;
}

/* Away, and with it the directories that were made for it. */
static enum outcome take_away(const char *path, const char *uppermost) {
    if (unlink(path) != 0 && errno != ENOENT && errno != ENOTDIR)
        return complain("%s: %s", path, strerror(errno));
    for (char *directory = directory_of(path); *uppermost && starts_with(directory, uppermost);) {
        if (rmdir(directory) != 0)
            break;
        directory = directory_of(directory);
    }
    if (flush_directory(directory_of(path)) != DONE)
        forgive(); /* the directory may be gone, too */
    return DONE;
}

enum outcome kept_write(const char *path, const struct kept *kept) {
    if (explaining) {
        if (kept->is == KEPT_LINK)
            say_line("ln -sfn %s %s", kept->link, path);
        else
            say_line("%s %s", kept->is == KEPT_ABSENT ? "rm" : "write", path);
        return DONE;
    }
    if (kept->is == KEPT_ABSENT)
        return take_away(path, kept->link);
    if (make_directories(directory_of(path)) != DONE)
        return FAILED;
    if ((kept->is == KEPT_LINK ? write_link(path, kept) : write_file(path, kept)) != DONE)
        return FAILED;
    return flush_directory(directory_of(path));
}

enum outcome write_kept(const char *path, const char *text, unsigned mode) {
    struct kept kept = {.is = KEPT_FILE, .mode = mode, .uid = UINT32_MAX, .gid = UINT32_MAX, .seconds = -1};
    text_word(&kept.content, text);
    return kept_write(path, &kept);
}

/* --- line by line --- */

/* NAME = VALUE, a comment, or words that say something by themselves: no part of something larger. */
static bool stands_alone(struct bytes line) {
    line = bytes_trimmed(line);
    if (!line.size || strchr("#;", line.at[0]))
        return true;
    bool alone = line.at[0] != '[';
    for (size_t i = 0; i < line.size && !memchr(line.at, '=', line.size); i++)
        alone = alone && !strchr("{}<>", line.at[i]);
    return alone;
}

bool has_lines(const struct kept *kept) {
    if (kept->is == KEPT_ABSENT)
        return true;
    if (kept->is != KEPT_FILE || (kept->content.size && memchr(kept->content.at, 0, kept->content.size)))
        return false;
    struct bytes rest = {text_string(&kept->content), kept->content.size}, line;
    while (next_line(&rest, &line))
        if (!stands_alone(line))
            return false;
    return true;
}

char *line_name(struct bytes line) {
    struct bytes name;
    line = bytes_trimmed(line);
    if (!line.size || strchr("#;", line.at[0]) || !cut(&line, '=', &name))
        return keep(line.at, line.size);
    name = bytes_trimmed(name);
    return keep(name.at, name.size);
}

static void add_line(struct state *state, const char *name, const char *line) {
    for (size_t i = 0; i < state->count; i++)
        if (is_same(state->at[i].key, name)) {
            state->at[i].value = print("%s\n%s", state->at[i].value, line);
            return;
        }
    state_add(state, name, line);
}

void add_lines(const struct kept *kept, const char *names, struct state *state) {
    struct bytes rest = {text_string(&kept->content), kept->content.size}, line;
    while (next_line(&rest, &line)) {
        const char *name = line_name(line);
        if (*name && (!names || is_word_of(name, names)))
            add_line(state, name, keep(line.at, line.size));
    }
}

static const struct item *item_named(const struct state *items, const char *name) {
    for (size_t i = 0; i < items->count; i++)
        if (is_same(items->at[i].key, name))
            return &items->at[i];
    return NULL;
}

bool has_items(const struct kept *kept, const struct state *items) {
    struct state lines = {0};
    add_lines(kept, NULL, &lines);
    for (size_t i = 0; i < items->count; i++) {
        const struct item *item = &items->at[i];
        const char *is = state_value(&lines, item->key);
        const bool goes = (item->flags & ITEM_ABSENT) || !*item->value;
        const bool is_line = *item->key != '/' && !(item->flags & ITEM_VOLATILE);
        if (is_line && (goes ? is != NULL : !is || !is_same(is, item->value)))
            return false;
    }
    return true;
}

void restore_lines(struct kept *kept, const struct state *items) {
    struct text text = {0};
    struct state written = {0};
    struct bytes rest = {text_string(&kept->content), kept->content.size}, line;
    while (next_line(&rest, &line)) {
        const char *name = line_name(line);
        const struct item *item = *name ? item_named(items, name) : NULL;
        if (!item) {
            text_print(&text, "%s\n", keep(line.at, line.size));
        } else if (!(item->flags & ITEM_ABSENT) && !state_value(&written, name)) {
            text_print(&text, "%s\n", item->value);
            state_add(&written, name, "");
        }
    }
    for (size_t i = 0; i < items->count; i++)
        if (!(items->at[i].flags & ITEM_ABSENT) && !state_value(&written, items->at[i].key))
            text_print(&text, "%s\n", items->at[i].value);
    kept->content = text;
    kept->seconds = -1;
}
