#include "guard/lock.h"

#include "guard/answer.h"
#include "guard/file.h"
#include "guard/read/cursor.h"
#include "guard/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

enum { WAIT_S = 30 };

static int mutex = -1;
static bool is_holder;

static void woken(int number) { (void)number; }

/* The lock of a file within a time; an interrupted wait is over. */
static bool lock_within(int file, int how, int seconds) {
    if (flock(file, how | LOCK_NB) == 0)
        return true;
    struct sigaction action = {.sa_handler = woken};
    const struct itimerval timer = {{0, 100000}, {seconds, 1}}, none = {{0, 0}, {0, 0}};
    if (seconds <= 0 || sigaction(SIGALRM, &action, NULL) != 0 || setitimer(ITIMER_REAL, &timer, NULL) != 0)
        return false;
    const bool locked = flock(file, how) == 0;
    if (setitimer(ITIMER_REAL, &none, NULL) != 0)
        return false;
    signal(SIGALRM, SIG_DFL);
    return locked;
}

/* Whether a file is still the one that others find under its name. */
static bool is_still(int file, const char *name) {
    struct stat about, there;
    return fstat(file, &about) == 0 && fstatat(run_place(), name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
           about.st_ino == there.st_ino && about.st_dev == there.st_dev;
}

static int open_lock(const char *name) {
    struct stat about;
    if (fstat(run_place(), &about) != 0 || about.st_nlink == 0) /* somebody has removed /run/wulf */
        if (reopen_run() != DONE)
            return -1;
    return open_own(run_place(), name, O_RDONLY | O_CREAT); /* also where /run cannot be written any more */
}

static const char *holder(void) {
    struct text text = {0};
    if (read_own(run_place(), "holder", &text) != DONE || !text.size)
        forgive();
    return keep(text.at, text.size ? text.size - 1 : 0);
}

/* Of a process: when it began, so that its number is nobody else's. */
static const char *begin_of(pid_t pid) {
    struct text text = {0};
    if (read_any(print("/proc/%d/stat", (int)pid), &text) != DONE) {
        forgive();
        return "";
    }
    const char *after = strrchr(text_string(&text), ')');
    struct bytes rest = {after ? after + 1 : "", after ? strlen(after + 1) : 0}, word = {0};
    for (int i = 0; i < 20; i++)
        if (!next_word(&rest, &word))
            return "";
    return keep(word.at, word.size);
}

static const char *mark_of(pid_t pid) { return print("%d.%s", (int)pid, begin_of(pid)); }

enum outcome keep_in_run(const char *name, const char *text) {
    return store_or_spare(run_place(), name, print("%s\n", text), false);
}

/* A guard that was killed may have left tools at work, which would go on setting things behind our back. */
static void end_left(void) {
    struct text text = {0};
    const bool left = read_own(run_place(), "holder", &text) == DONE;
    forgive();
    if (left && text.size > 1)
        end_marked(keep(text.at, text.size - 1));
}

static int seconds_to(int64_t until) { return (int)((until - now_ms()) / 1000); }

/* One after the other: who waits to change something is not overtaken by ever more who look. */
static bool lock_in_turn(int file, int how, int64_t until) {
    const int turn = open_own(run_place(), "turn", O_RDONLY | (how == LOCK_EX ? O_CREAT : 0));
    const bool locked = (turn < 0 || lock_within(turn, LOCK_EX, seconds_to(until))) &&
                        lock_within(file, how, seconds_to(until));
    if (turn >= 0)
        close(turn);
    return locked;
}

void exclusively(bool puts_back) {
    const int64_t until = now_ms() + WAIT_S * 1000;
    for (;;) {
        mutex = open_lock("mutex");
        if (mutex < 0)
            fail(EXIT_ERROR, "cannot write to %s: %s", RUN_PLACE, complaint(strerror(errno)));
        if (!lock_in_turn(mutex, LOCK_EX, until))
            fail(EXIT_BUSY, "another guard is at work for more than %d s: %s", WAIT_S, holder());
        if (is_still(mutex, "mutex"))
            break;
        close(mutex);
    }
    end_left();
    const char *mark = mark_of(getpid());
    mark_tools(mark);
    is_holder = keep_in_run("holder", mark) == DONE;
    if (!is_holder && !puts_back)
        fail(EXIT_ERROR, "cannot write to %s: is it full?", RUN_PLACE);
    forgive();
}

bool is_exclusive(void) { return mutex >= 0 && is_still(mutex, "mutex"); }

void looking(void) {
    if (!is_there(run_place(), "mutex"))
        return;
    mutex = open_own(run_place(), "mutex", O_RDONLY);
    if (mutex >= 0 && !lock_in_turn(mutex, LOCK_SH, now_ms() + WAIT_S * 1000))
        fail(EXIT_BUSY, "another guard is at work for more than %d s: %s", WAIT_S, holder());
}

void release(void) {
    if (is_holder)
        remove_own(run_place(), "holder");
    is_holder = false;
    if (mutex >= 0)
        close(mutex);
    mutex = -1;
}

void one_of(uid_t caller) {
    const int file = open_lock(print("caller.%u", (unsigned)caller));
    if (file < 0 || !lock_within(file, LOCK_EX, WAIT_S))
        fail(EXIT_BUSY, "another request of this user is being answered");
}

bool is_at_work(void) {
    const int file = open_lock("mutex");
    const bool taken = file >= 0 && flock(file, LOCK_EX | LOCK_NB) != 0;
    if (file >= 0)
        close(file);
    return taken;
}

/* Who puts something back is given the time that its tools take. */
static bool puts_back(pid_t pid) {
    struct text line = {0};
    if (read_any(print("/proc/%d/cmdline", (int)pid), &line) != DONE)
        return false;
    const char *verb = text_string(&line) + strlen(text_string(&line)) + 1;
    return line.size > strlen(text_string(&line)) + 1 && is_word_of(verb, "overdue undo recover");
}

void end_who_hangs(int wait_s) {
    const int file = open_lock("mutex");
    const bool is_free = file < 0 || lock_within(file, LOCK_EX, wait_s);
    if (file >= 0)
        close(file);
    if (is_free)
        return;
    const char *mark = holder();
    struct bytes rest = {mark, strlen(mark)}, word;
    uint64_t pid;
    if (!cut(&rest, '.', &word) || !bytes_number(word, INT32_MAX, &pid))
        return;
    const int process = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
    if (process < 0)
        return;
    if (is_same(mark_of((pid_t)pid), mark) && !puts_back((pid_t)pid)) {
        note("the guard at work hangs: it is ended");
        if (syscall(SYS_pidfd_send_signal, process, SIGKILL, NULL, 0) == 0)
            end_marked(mark);
    }
    close(process);
}

/* --- the controller's lock --- */

struct owner owner_now(void) {
    struct owner owner = {0};
    struct text text = {0};
    if (read_own(run_place(), "lock", &text) != DONE || !text.size) {
        forgive();
        return owner;
    }
    struct bytes rest = {text.at, text.size - 1}, fields[3];
    uint64_t numbers[3];
    bool good = cut(&rest, '\t', &fields[0]) && cut(&rest, '\t', &fields[1]) && cut(&rest, '\t', &fields[2]);
    good = good && bytes_number(fields[1], INT64_MAX, &numbers[0]) &&
           bytes_number(fields[2], INT64_MAX, &numbers[1]) && bytes_number(rest, UINT32_MAX, &numbers[2]);
    if (good)
        owner = (struct owner){true, keep(fields[0].at, fields[0].size), (uid_t)numbers[2],
                               (int64_t)numbers[0], (int64_t)numbers[1]};
    return owner;
}

void require_owner(const char *name, uid_t caller) {
    const struct owner owner = owner_now();
    if (!owner.is)
        fail(EXIT_BUSY, "nobody has taken this node: lock it first");
    if (!is_same(owner.name, name) || (caller && owner.uid != caller))
        fail(EXIT_BUSY, "%s has this node since %lld s", owner.name, (long long)(now_s() - owner.since));
}

enum outcome set_owner(const char *name, uid_t caller, int64_t since, int64_t until) {
    return keep_in_run(
        "lock", print("%s\t%lld\t%lld\t%u", name, (long long)since, (long long)until, (unsigned)caller));
}

void unlock_owner(const char *name, uid_t uid) {
    const struct owner owner = owner_now();
    if (owner.is && is_same(owner.name, name) && owner.uid == uid)
        remove_own(run_place(), "lock");
}
