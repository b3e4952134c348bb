#include "guard/watch.h"

#include "guard/answer.h"
#include "guard/change.h"
#include "guard/fault.h"
#include "guard/file.h"
#include "guard/journal.h"
#include "guard/lock.h"
#include "guard/recover.h"
#include "guard/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    ROLES = 3,
    BEHIND_S = 2,
    ANSWER_MS = 2000,
    START_MS = 5000,
    HANGS_S = 5,
    LONGEST_UNDO_S = 900,
    AGAIN_S = 3,
    MEET_MS = 200,
    ALONE_S = 10
};

/* A role, the file that has its number for people, and how long after the one before it acts. */
static const struct {
    const char *name, *file;
} ROLE[ROLES] = {{"watch", "watcher"}, {"keep", "keeper"}, {"spare", "spare"}};

bool is_role(const char *word) {
    for (size_t i = 0; i < ROLES; i++)
        if (is_same(word, ROLE[i].name))
            return true;
    return false;
}

/* --- asking --- */

/* The name of a socket must be short: it is found by way of the directory that is open. */
static struct sockaddr_un address_of(size_t role) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int size = snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s.socket",
                              run_place(), ROLE[role].name);
    if (size < 0 || (size_t)size >= sizeof address.sun_path)
        address.sun_path[0] = 0; /* there is no such socket */
    return address;
}

static int connect_to(size_t role) {
    const struct sockaddr_un address = address_of(role);
    const int file = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (file >= 0 && (connect(file, (const struct sockaddr *)&address, sizeof address) != 0 ||
                      send(file, "look", 4, MSG_NOSIGNAL) != 4)) {
        close(file);
        return -1;
    }
    return file;
}

/* Who listens, as the kernel knows it: root's alone. */
static pid_t listener(int file) {
    struct ucred who;
    socklen_t size = sizeof who;
    if (file < 0 || getsockopt(file, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 || who.uid != 0)
        return 0;
    return who.pid;
}

static bool answers(int file, int64_t until) {
    struct pollfd one = {file, POLLIN, 0};
    char word[8];
    const int64_t left = until - now_ms();
    if (file < 0 || poll(&one, 1, left > 0 ? (int)left : 0) != 1)
        return false;
    return recv(file, word, sizeof word, 0) == 2 && memcmp(word, "ok", 2) == 0;
}

/* --- starting --- */

/* One that is stopped, hangs, or has lost its socket: known by the lock of its role, which only a living one
 * has. */
static void end_role(size_t role) {
    struct text text = {0};
    uint64_t pid;
    const char *name = print("%s.lock", ROLE[role].name);
    const int file = open_own(run_place(), name, O_RDWR | O_CREAT);
    const bool is_held = file >= 0 && flock(file, LOCK_EX | LOCK_NB) != 0;
    if (file >= 0)
        close(file);
    if (!is_held || read_own(run_place(), name, &text) != DONE) {
        forgive();
        return;
    }
    struct bytes rest = {text_string(&text), text.size}, line;
    if (next_line(&rest, &line) && bytes_number(line, INT32_MAX, &pid) && pid > 1)
        kill((pid_t)pid, SIGKILL);
}

static enum outcome start_by_systemd(size_t role) {
    if (access("/run/systemd/system", F_OK) != 0 || fault_bare())
        return FAILED;
    /* A service outlives the connection, and systemd starts it again should somebody end it. */
    const char *unit =
        print("--unit=wulf-guard-%s-%d-%lld", ROLE[role].name, (int)getpid(), (long long)now_ms());
    return RUN("systemd-run", "--quiet", "--collect", unit, "-p", "Restart=on-failure", "-p",
               "RestartSec=100ms", "-p", "StartLimitIntervalSec=0", PROGRAM_PLACE, ROLE[role].name);
}

static bool comes_up(size_t role) {
    const int64_t until = now_ms() + START_MS;
    for (int pause = 1; now_ms() < until; pause = pause < 50 ? 2 * pause : 50) {
        const int file = connect_to(role);
        const bool good = answers(file, until);
        if (file >= 0)
            close(file);
        if (good)
            return true;
        wait_ms(pause);
    }
    return false;
}

static enum outcome start_role(size_t role) {
    end_role(role);
    if (start_by_systemd(role) == DONE && comes_up(role))
        return DONE;
    forgive();
    if (start_own((const char *const[]){PROGRAM_PLACE, ROLE[role].name, NULL}) == DONE && comes_up(role))
        return DONE;
    return complain("the watcher does not start");
}

enum outcome watched(void) {
    int files[ROLES];
    enum outcome outcome = DONE;
    const int64_t until = now_ms() + ANSWER_MS;
    for (size_t i = 0; i < ROLES; i++) /* all are asked before any is waited for */
        files[i] = connect_to(i);
    for (size_t i = 0; i < ROLES; i++) {
        if (!answers(files[i], until) && start_role(i) != DONE)
            outcome = FAILED;
        if (files[i] >= 0)
            close(files[i]);
    }
    return outcome;
}

void look_again(void) {
    for (size_t i = 0; i < ROLES; i++) {
        const int file = connect_to(i);
        const pid_t pid = listener(file);
        if (pid > 1)
            kill(pid, SIGCONT); /* also one that somebody has stopped */
        if (file >= 0)
            close(file);
    }
}

/* --- being one --- */

struct watcher {
    size_t role;
    int lock, listening, timer;
    int peers[ROLES]; /* pidfds of the others; -1 for what is not known */
    int work;         /* pidfd of what undoes; -1 for none */
    pid_t worker;
    int64_t work_began, due; /* [s] since boot; due: INT64_MAX when nothing is open */
    bool any_open, has_tidied;
};

static _Noreturn void retire(const struct watcher *watcher) {
    struct text text = {0};
    const char *file = ROLE[watcher->role].file;
    if (read_own(run_place(), file, &text) == DONE &&
        is_same(text_string(&text), print("%d\n", (int)getpid())))
        remove_own(run_place(), file);
    remove_own(run_place(), print("%s.socket", ROLE[watcher->role].name));
    _exit(EXIT_DONE);
}

/* The lock of the role, for as long as we live; one that was ended just now is free in a moment. */
static void take_role(struct watcher *watcher) {
    const char *name = print("%s.lock", ROLE[watcher->role].name), *pid = print("%d\n", (int)getpid());
    watcher->lock = open_own(run_place(), name, O_RDWR | O_CREAT);
    for (int i = 0; watcher->lock >= 0 && flock(watcher->lock, LOCK_EX | LOCK_NB) != 0; i++) {
        if (i == 200)
            _exit(EXIT_DONE); /* another has it by right */
        wait_ms(10);
    }
    /* An end that is no error: systemd would start it again and again where /run is full. */
    if (watcher->lock < 0 || ftruncate(watcher->lock, 0) != 0 ||
        pwrite(watcher->lock, pid, strlen(pid), 0) != (ssize_t)strlen(pid) ||
        keep_in_run(ROLE[watcher->role].file, print("%d", (int)getpid())) != DONE)
        _exit(EXIT_DONE);
}

static void listen_as(struct watcher *watcher) {
    const struct sockaddr_un address = address_of(watcher->role);
    remove_own(run_place(), print("%s.socket", ROLE[watcher->role].name));
    watcher->listening = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (watcher->listening < 0 ||
        bind(watcher->listening, (const struct sockaddr *)&address, sizeof address) != 0 ||
        listen(watcher->listening, 64) != 0)
        _exit(EXIT_DONE);
    watcher->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (watcher->timer < 0)
        _exit(EXIT_DONE);
}

/* What is open, and when the first of it is due: as a child of ours sees it, whose memory goes with it. A
 * rest is the marks of a change that is over, whose guard was ended before it removed them. */
struct glance {
    int64_t due;
    bool any_open, has_rest;
};

static void glance_at(const char *tx, struct glance *seen) {
    if (ends_with(tx, ".new"))
        return;
    if (is_over(state_of(tx).word)) {
        seen->has_rest = true;
        return;
    }
    const int64_t due = due_at(tx); /* at once where that is gone: somebody has wiped /run/wulf */
    seen->any_open = true;
    seen->due = due < seen->due ? due : seen->due;
}

static struct glance glance(void) {
    struct glance seen = {INT64_MAX, false, false};
    const struct names deadlines = names_with(run_place(), ".", "deadline."),
                       open = names_with(state_place(), ".", "open.");
    for (size_t i = 0; i < deadlines.count; i++)
        glance_at(deadlines.at[i] + strlen("deadline."), &seen);
    for (size_t i = 0; i < open.count; i++)
        glance_at(open.at[i] + strlen("open."), &seen);
    return seen;
}

/* Looks in a process of its own; what cannot be seen is open, and due. */
static void look(struct watcher *watcher) {
    int ends[2];
    struct glance seen = {0, true, false};
    watcher->due = 0;
    watcher->any_open = true;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return;
    const pid_t child = fork();
    if (child == 0) {
        note_nothing();
        seen = glance();
        _exit(write(ends[1], &seen, sizeof seen) == (ssize_t)sizeof seen ? EXIT_DONE : EXIT_ERROR);
    }
    close(ends[1]);
    if (child > 0) {
        if (read(ends[0], &seen, sizeof seen) == (ssize_t)sizeof seen) {
            /* What is over is tidied once: where that fails, a call does it. */
            const bool tidies = seen.has_rest && !watcher->has_tidied;
            watcher->due = tidies && now_s() < seen.due ? now_s() : seen.due;
            watcher->any_open = seen.any_open || tidies;
            watcher->has_tidied &= seen.has_rest;
        }
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    close(ends[0]);
}

/* Whether one of the others is not known. */
static bool is_alone(const struct watcher *watcher) {
    for (size_t i = 0; i < ROLES; i++)
        if (i != watcher->role && watcher->peers[i] < 0)
            return true;
    return false;
}

static void set_timer(const struct watcher *watcher) {
    struct itimerspec when = {.it_value = {.tv_nsec = 1}};
    int64_t next = watcher->due == INT64_MAX ? INT64_MAX : watcher->due + (int64_t)watcher->role * BEHIND_S;
    if (watcher->work >= 0)
        next = now_s() + LONGEST_UNDO_S;
    else if (next <= watcher->work_began + AGAIN_S)
        next = watcher->work_began + AGAIN_S;
    if (next > now_s() + ALONE_S && watcher->work < 0 && is_alone(watcher))
        next = now_s() + ALONE_S;
    when.it_value.tv_sec = next > 0 ? next : 1;
    if (next == INT64_MAX)
        when.it_value = (struct timespec){0, 0};
    if (timerfd_settime(watcher->timer, TFD_TIMER_ABSTIME, &when, NULL) != 0)
        _exit(EXIT_DONE);
}

static void start_work(struct watcher *watcher) {
    if (watcher->work >= 0)
        return;
    watcher->worker = fork();
    if (watcher->worker == 0) {
        static const char *const environment[] = {NULL};
        const char *const words[] = {PROGRAM_PLACE, "overdue", ROLE[watcher->role].name, NULL};
        execve("/proc/self/exe", (char *const *)words, (char *const *)environment);
        _exit(127);
    }
    watcher->work_began = now_s();
    if (watcher->worker > 0)
        watcher->work = (int)syscall(SYS_pidfd_open, watcher->worker, 0);
}

static void end_work(struct watcher *watcher) {
    while (waitpid(watcher->worker, NULL, 0) < 0 && errno == EINTR)
        continue;
    close(watcher->work);
    watcher->work = -1;
    watcher->has_tidied = true;
}

/* Know the others: a socket that answers belongs to who listens. */
static void meet_peers(struct watcher *watcher) {
    for (size_t i = 0; i < ROLES; i++) {
        if (i == watcher->role || watcher->peers[i] >= 0)
            continue;
        const struct sockaddr_un address = address_of(i);
        const int file = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (file >= 0 && connect(file, (const struct sockaddr *)&address, sizeof address) == 0) {
            const pid_t pid = listener(file);
            watcher->peers[i] = pid > 1 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
        }
        if (file >= 0)
            close(file);
    }
}

/* In a process of its own: what is kept for it goes with that. */
static void start_peer(const struct watcher *watcher, size_t role) {
    const pid_t child = fork();
    if (child == 0) {
        note_about("watch", "-");
        note("the guard's process '%s' does not answer: it is started again", ROLE[role].name);
        close(watcher->lock);
        close(watcher->listening);
        wait_ms((int)watcher->role * MEET_MS); /* the other of us may have started it */
        const int file = connect_to(role);
        if (answers(file, now_ms() + MEET_MS))
            _exit(EXIT_DONE);
        _exit(start_role(role) == DONE ? EXIT_DONE : EXIT_FAILED);
    }
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
}

static void mind_peer(struct watcher *watcher, size_t role) {
    close(watcher->peers[role]);
    watcher->peers[role] = -1;
    look(watcher);
    if (!watcher->any_open)
        retire(watcher);
    start_peer(watcher, role);
    meet_peers(watcher);
}

static void answer_one(struct watcher *watcher) {
    char word[8];
    const int file = accept4(watcher->listening, NULL, NULL, SOCK_CLOEXEC);
    if (file < 0)
        return;
    struct pollfd one = {file, POLLIN, 0};
    /* Who asks waits for a word of one that lives; what it has to see it sees right after. */
    const bool asked = poll(&one, 1, 100) == 1 && recv(file, word, sizeof word, MSG_DONTWAIT) == 4;
    if (asked && send(file, "ok", 2, MSG_NOSIGNAL | MSG_DONTWAIT) != 2)
        errno = 0; /* who asked has gone */
    if (asked)
        look(watcher);
    close(file);
    meet_peers(watcher);
}

/* Somebody has removed /run/wulf: who is started anew finds the new one, or that another has its role there.
 */
static void begin_anew_without_run(const struct watcher *watcher) {
    struct stat about;
    if (fstat(run_place(), &about) == 0 && about.st_nlink > 0)
        return;
    static const char *const environment[] = {NULL};
    const char *const words[] = {PROGRAM_PLACE, ROLE[watcher->role].name, NULL};
    execve("/proc/self/exe", (char *const *)words, (char *const *)environment);
    _exit(EXIT_ERROR);
}

static void act(struct watcher *watcher) {
    uint64_t times;
    if (read(watcher->timer, &times, sizeof times) != (ssize_t)sizeof times)
        return;
    if (watcher->work >= 0) {
        kill(watcher->worker, SIGKILL); /* it takes longer than any undo does */
        return;
    }
    begin_anew_without_run(watcher);
    look(watcher);
    meet_peers(watcher);
    for (size_t i = 0; watcher->any_open && i < ROLES; i++)
        if (i != watcher->role && watcher->peers[i] < 0)
            start_peer(watcher, i);
    if (watcher->due != INT64_MAX && now_s() >= watcher->due + (int64_t)watcher->role * BEHIND_S)
        start_work(watcher);
}

static void wait_once(struct watcher *watcher) {
    struct pollfd files[ROLES + 3] = {
        {watcher->listening, POLLIN, 0}, {watcher->timer, POLLIN, 0}, {watcher->work, POLLIN, 0}};
    for (size_t i = 0; i < ROLES; i++)
        files[3 + i] = (struct pollfd){watcher->peers[i], POLLIN, 0};
    if (poll(files, ROLES + 3, -1) < 0)
        return;
    if (files[2].revents) {
        end_work(watcher);
        look(watcher);
    }
    if (files[0].revents)
        answer_one(watcher);
    if (files[1].revents)
        act(watcher);
    for (size_t i = 0; i < ROLES; i++)
        if (files[3 + i].revents && watcher->peers[i] >= 0)
            mind_peer(watcher, i);
}

void watch(const char *role) {
    struct watcher watcher = {.peers = {-1, -1, -1}, .work = -1, .due = INT64_MAX, .any_open = true};
    for (size_t i = 0; i < ROLES; i++)
        if (is_same(role, ROLE[i].name))
            watcher.role = i;
    take_role(&watcher);
    listen_as(&watcher);
    /* Nothing is open for whoever starts us until it has asked. */
    watcher.due = now_s() + START_MS / 1000;
    while (watcher.any_open || watcher.work >= 0) {
        set_timer(&watcher);
        wait_once(&watcher);
    }
    retire(&watcher);
}

void overdue(void) {
    end_who_hangs(HANGS_S);
    exclusively(true);
    note_rotate();
    recover(false);
}
