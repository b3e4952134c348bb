/* Files: those of the guard's own two directories, which are opened step by step and are root's alone, and
 * others. */
#ifndef WULF_GUARD_FILE_H
#define WULF_GUARD_FILE_H

#include "guard/base.h"

#include <sys/types.h>

#define STATE_PLACE "/var/lib/wulf"
#define RUN_PLACE "/run/wulf"
#define PROGRAM_PLACE STATE_PLACE "/guard"

/* A directory that is root's, opened without following links; -1 where it is not there or not so. */
int open_directory(const char *path, bool make);
/* The guard's own directories. `make` is false for who only looks. */
MUST_CHECK enum outcome open_places(bool make);
int state_place(void);
int run_place(void);
/* Opens /run/wulf again where somebody has removed it. */
MUST_CHECK enum outcome reopen_run(void);

/* A whole file that is regular, root's and nobody else's to write, at most `most` bytes; relative to a
 * directory. */
MUST_CHECK enum outcome read_own(int place, const char *name, struct text *text);
/* Any file, such as those of /proc: at most 64 MiB. */
MUST_CHECK enum outcome read_any(const char *path, struct text *text);
/* The same of a descriptor, which is closed; its path is for the complaint. */
MUST_CHECK enum outcome read_opened(int file, const char *path, struct text *text);
/* Its one value: without the newline at its end. */
MUST_CHECK enum outcome read_value(const char *path, char **value);

/* A descriptor of a file, as `openat` gives it; never waits, should somebody have put a pipe there. */
int open_own(int place, const char *name, int how);

/* There as a whole or not at all, and (synced) on the disk. */
MUST_CHECK enum outcome store(int place, const char *name, const char *at, size_t size, bool synced);
/* The same, which gives the reserve of the place away when that is full. */
MUST_CHECK enum outcome store_or_spare(int place, const char *name, const char *text, bool synced);
void have_reserve(void);
MUST_CHECK enum outcome sync_directory(int place, const char *name);
MUST_CHECK enum outcome sync_file(int place, const char *name);
void remove_own(int place, const char *name);
void remove_tree(int place, const char *name);
bool is_there(int place, const char *name);
/* Moves a directory out of the way at once, then removes it: no half of it is ever seen. */
void discard_tree(int place, const char *name, const char *aside);

/* Names in a directory, sorted; without those that begin with a dot. */
struct names {
    char **at;
    size_t count;
    bool are_some; /* there may be others, which could not be listed; never of our own directories */
};
struct names names_in(int place, const char *directory);
/* Names that begin so. */
struct names names_with(int place, const char *directory, const char *start);

bool is_open_to_others(const char *directory);

#endif
