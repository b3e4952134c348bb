#include "guard/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_BYTES = 64 << 20, RESERVE_BYTES = 65536 };

static int places[2] = {-1, -1}; /* state, run */

/* One step down, from a directory that is known. */
static int step_down(int from, const char *name, bool make) {
    if (make && mkdirat(from, name, 0700) != 0 && errno != EEXIST)
        return -1;
    const int place = openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat about;
    if (place >= 0 && (fstat(place, &about) != 0 || about.st_uid != 0)) {
        close(place);
        errno = EPERM;
        return -1;
    }
    return place;
}

int open_directory(const char *path, bool make) {
    int place = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char *rest = NULL;
    for (char *name = strtok_r(keep_text(path), "/", &rest); name && place >= 0;
         name = strtok_r(NULL, "/", &rest)) {
        const int next = step_down(place, name, make);
        const int why = errno;
        close(place);
        errno = why;
        place = next;
    }
    return place;
}

/* Its files are the journal: nobody else may write there. */
static bool close_to_others(int place) {
    struct stat about;
    return fstat(place, &about) == 0 && ((about.st_mode & 077) == 0 || fchmod(place, 0700) == 0);
}

enum outcome open_places(bool make) {
    static const char *const names[] = {STATE_PLACE, RUN_PLACE};
    for (size_t i = 0; i < COUNT(places); i++) {
        places[i] = open_directory(names[i], make);
        if (places[i] < 0 && (make || errno != ENOENT))
            return complain("cannot open %s: %s", names[i], strerror(errno));
        if (make && !close_to_others(places[i]))
            return complain("%s is open to others", names[i]);
    }
    return DONE;
}

enum outcome reopen_run(void) {
    if (places[1] >= 0)
        close(places[1]);
    places[1] = open_directory(RUN_PLACE, true);
    return places[1] >= 0 && close_to_others(places[1]) ? DONE : complain("cannot open %s", RUN_PLACE);
}

int state_place(void) { return places[0]; }
int run_place(void) { return places[1]; }

/* To its end, or as much as `size` where that is known. */
static enum outcome read_all(int file, struct text *text, size_t size) {
    static char block[65536];
    while (text->size < size) {
        const ssize_t got = read(file, block, sizeof block);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return complain("%s", strerror(errno));
        if (got == 0)
            return DONE;
        if (text->size + (size_t)got > MOST_BYTES)
            return complain("it is larger than %d MiB", MOST_BYTES >> 20);
        text_add(text, block, (size_t)got);
    }
    return DONE;
}

static bool is_regular(int file) {
    struct stat about;
    return fstat(file, &about) == 0 && S_ISREG(about.st_mode);
}

int open_own(int place, const char *name, int how) {
    const int all = how | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, file = openat(place, name, all, 0600);
    const int why = errno;
    struct stat about;
    if (!(how & O_CREAT) || (file >= 0 && is_regular(file)))
        return file;
    if (file >= 0)
        close(file);
    /* A pipe, a link or a directory that somebody has put there is no file of ours: it goes. */
    if (fstatat(place, name, &about, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(about.st_mode)) {
        remove_own(place, name);
        return openat(place, name, all, 0600);
    }
    errno = why;
    return -1;
}

enum outcome read_own(int place, const char *name, struct text *text) {
    if (place < 0)
        return complain("%s: its directory is not there", name);
    const int file = open_own(place, name, O_RDONLY);
    if (file < 0)
        return complain("%s: %s", name, strerror(errno));
    struct stat about;
    enum outcome outcome = FAILED;
    if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode) || about.st_uid != 0 || about.st_nlink != 1 ||
        (about.st_mode & 022) != 0)
        complain("%s is not a file of root's alone", name);
    else
        outcome = read_all(file, text, (size_t)about.st_size);
    close(file);
    return outcome;
}

enum outcome read_any(const char *path, struct text *text) {
    return read_opened(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), path, text);
}

enum outcome read_opened(int file, const char *path, struct text *text) {
    if (file < 0)
        return complain("%s: %s", path, strerror(errno));
    const enum outcome outcome = read_all(file, text, SIZE_MAX);
    close(file);
    return outcome == DONE ? DONE : complain("%s: %s", path, complaint("it cannot be read"));
}

enum outcome read_value(const char *path, char **value) {
    struct text text = {0};
    if (read_any(path, &text) != DONE)
        return FAILED;
    while (text.size && text.at[text.size - 1] == '\n')
        text.at[--text.size] = 0;
    if (text.size && memchr(text.at, 0, text.size))
        return complain("%s is not text", path);
    *value = keep(text.at, text.size);
    return DONE;
}

static enum outcome write_all(int file, const char *at, size_t size) {
    while (size) {
        const ssize_t put = write(file, at, size);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return complain("%s", strerror(errno));
        at += put;
        size -= (size_t)put;
    }
    return DONE;
}

static enum outcome write_new(int place, const char *name, const char *at, size_t size, bool synced) {
    remove_own(place, name);
    const int file = open_own(place, name, O_WRONLY | O_CREAT | O_EXCL);
    if (file < 0)
        return complain("%s: %s", name, strerror(errno));
    enum outcome outcome = write_all(file, at, size);
    if (outcome == DONE && synced && fsync(file) != 0)
        outcome = complain("%s: %s", name, strerror(errno));
    if (close(file) != 0 && outcome == DONE)
        outcome = complain("%s: %s", name, strerror(errno));
    return outcome;
}

static char *directory_of(const char *name) {
    const char *slash = strrchr(name, '/');
    return slash ? keep(name, (size_t)(slash - name)) : keep_text(".");
}

static enum outcome sync_opened(int place, const char *name, int how) {
    const int file = open_own(place, name, O_RDONLY | how);
    if (file < 0)
        return complain("%s: %s", name, strerror(errno));
    const int failed = fsync(file);
    close(file);
    return failed ? complain("%s: %s", name, strerror(errno)) : DONE;
}

enum outcome sync_file(int place, const char *name) { return sync_opened(place, name, 0); }
enum outcome sync_directory(int place, const char *name) { return sync_opened(place, name, O_DIRECTORY); }

/* A directory in its place is nothing of ours. */
static bool is_put_there(int place, const char *made, const char *name) {
    if (renameat(place, made, place, name) == 0)
        return true;
    if (errno != EISDIR)
        return false;
    remove_own(place, name);
    return renameat(place, made, place, name) == 0;
}

enum outcome store(int place, const char *name, const char *at, size_t size, bool synced) {
    if (place < 0)
        return complain("%s: its directory is not there", name);
    const char *made = print("%s.new", name);
    enum outcome outcome = write_new(place, made, at, size, synced);
    if (outcome == DONE && !is_put_there(place, made, name))
        outcome = complain("%s: %s", name, strerror(errno));
    if (outcome == DONE && synced)
        outcome = sync_directory(place, directory_of(name));
    if (outcome != DONE)
        remove_own(place, made);
    return outcome;
}

enum outcome store_or_spare(int place, const char *name, const char *text, bool synced) {
    if (store(place, name, text, strlen(text), synced) == DONE)
        return DONE;
    remove_own(place, "reserve");
    return store(place, name, text, strlen(text), synced);
}

/* So that the end of a change can be written down on a disk, and in a /run, that has become full. */
void have_reserve(void) {
    static const char zeros[RESERVE_BYTES];
    for (size_t i = 0; i < COUNT(places); i++)
        if (places[i] >= 0 && !is_there(places[i], "reserve") &&
            store(places[i], "reserve", zeros, sizeof zeros, false) != DONE)
            forgive(); /* what then cannot be written fails closed */
}

void remove_own(int place, const char *name) {
    if (place >= 0 && unlinkat(place, name, 0) != 0 && errno == EISDIR)
        remove_tree(place, name);
}

void remove_tree(int place, const char *name) {
    const struct names names = names_in(place, name);
    for (size_t i = 0; i < names.count; i++) {
        const char *path = print("%s/%s", name, names.at[i]);
        if (unlinkat(place, path, 0) != 0 && (errno == EISDIR || errno == EPERM))
            remove_tree(place, path);
    }
    if (place >= 0 && unlinkat(place, name, AT_REMOVEDIR) != 0)
        unlinkat(place, name, 0);
}

/* What of our own directories cannot be seen is not taken for what is not there. */
static void require_absent(int place, const char *name) {
    if (place != AT_FDCWD && errno != ENOENT && errno != ENOTDIR)
        cannot_go_on(print("%s: %s", name, strerror(errno)));
}

bool is_there(int place, const char *name) {
    struct stat about;
    if (place < 0 && place != AT_FDCWD)
        return false;
    if (fstatat(place, name, &about, AT_SYMLINK_NOFOLLOW) == 0)
        return true;
    require_absent(place, name);
    return false;
}

void discard_tree(int place, const char *name, const char *aside) {
    if (renameat(place, name, place, aside) == 0)
        remove_tree(place, aside);
}

static int by_name(const void *one, const void *other) {
    return strcmp(*(char *const *)one, *(char *const *)other);
}

struct names names_with(int place, const char *directory, const char *start) {
    struct names names = {0};
    const int at = place == AT_FDCWD || place >= 0
                       ? openat(place, directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                       : -1;
    DIR *open = at < 0 ? NULL : fdopendir(at);
    if (!open) {
        names.are_some = errno != ENOENT && errno != ENOTDIR && errno != EACCES;
        if (place >= 0 || place == AT_FDCWD)
            require_absent(place, directory);
        if (at >= 0)
            close(at);
        return names;
    }
    size_t room = 0;
    errno = 0;
    for (struct dirent *entry; (entry = readdir(open)) != NULL; errno = 0) {
        if (entry->d_name[0] == '.' || !starts_with(entry->d_name, start))
            continue;
        if (names.count == room) {
            room = room ? 2 * room : 64;
            char **more = take(room * sizeof *more);
            if (names.count)
                memcpy(more, names.at, names.count * sizeof *more);
            names.at = more;
        }
        names.at[names.count++] = keep_text(entry->d_name);
    }
    names.are_some = errno != 0;
    if (errno)
        require_absent(place, directory);
    closedir(open);
    if (names.count)
        qsort(names.at, names.count, sizeof *names.at, by_name);
    return names;
}

struct names names_in(int place, const char *directory) { return names_with(place, directory, ""); }

/* Where somebody else may make links, root must not write for him. */
bool is_open_to_others(const char *directory) {
    for (char *path = keep_text(directory); *path; *strrchr(path, '/') = 0) {
        struct stat about;
        if (path[0] != '/' || lstat(path, &about) != 0 || !S_ISDIR(about.st_mode) || about.st_uid != 0 ||
            (about.st_mode & 022) != 0)
            return true;
    }
    return false;
}
