/* Faults at the steps that are noted. Built with WULF_FAULTS alone: never in what is put on a node. */
#include "guard/fault.h"

#include "guard/base.h"
#include "guard/file.h"
#include "guard/tool.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PLACE "/run/wulf-fault"

bool fault_bare(void) { return access(PLACE "/bare", F_OK) == 0; }

const char *fault_address(void) {
    char *address = NULL;
    const bool said = read_value(PLACE "/address", &address) == DONE;
    forgive();
    return said ? address : "";
}

const char *fault_of_reader(void) {
    char *fault = NULL;
    const bool said = read_value(PLACE "/reader", &fault) == DONE;
    forgive();
    return said ? fault : "";
}

/* Of what is said some bits, and now and then one of the rest. */
static void flip(unsigned seed, unsigned char *at, size_t size) {
    srand(seed);
    for (unsigned i = 0; i <= seed % 4; i++) {
        size_t where = (size_t)rand() % size;
        for (int tries = 0; !at[where] && tries < 5000; tries++)
            where = (size_t)rand() % size;
        at[where] ^= (unsigned char)(1 << rand() % 8);
    }
}

void fault_as_reader(const char *fault, void *record, size_t size) {
    if (is_same(fault, "open") && open("/etc/passwd", O_RDONLY | O_CLOEXEC) < 0)
        _exit(EXIT_ERROR);
    if (is_same(fault, "write") && write(1, "x", 1) != 1)
        _exit(EXIT_ERROR);
    if (is_same(fault, "fork") && fork() < 0)
        _exit(EXIT_ERROR);
    if (is_same(fault, "kill"))
        kill(getpid(), SIGKILL);
    if (is_same(fault, "leave"))
        _exit(EXIT_DONE);
    if (starts_with(fault, "flip "))
        flip((unsigned)strtoul(fault + strlen("flip "), NULL, 10), record, size);
}

static void record(const char *line) {
    const int file = open(PLACE "/record", O_WRONLY | O_APPEND | O_CLOEXEC);
    if (file < 0)
        return;
    if (write(file, line, strlen(line)) < 0)
        abort();
    close(file);
}

static pid_t pid_in(const char *name) {
    struct text text = {0};
    const bool has = read_own(run_place(), name, &text) == DONE;
    forgive();
    return has ? (pid_t)strtol(text_string(&text), NULL, 10) : 0;
}

static void kill_role(const char *name) {
    const pid_t pid = pid_in(name);
    if (pid > 1)
        kill(pid, SIGKILL);
}

/* The session that this guard was started by. */
static void kill_sshd(void) {
    for (pid_t pid = getpid(); pid > 1;) {
        struct text text = {0};
        char *name = NULL;
        if (read_any(print("/proc/%d/stat", (int)pid), &text) != DONE)
            return;
        const char *rest = strrchr(text_string(&text), ')');
        if (read_value(print("/proc/%d/comm", (int)pid), &name) == DONE && starts_with(name, "sshd")) {
            kill(pid, SIGKILL);
            return;
        }
        pid = rest ? (pid_t)strtol(rest + 4, NULL, 10) : 0;
    }
}

static void fill(void) {
    static char zeros[65536];
    const int file = openat(state_place(), "fill", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    while (file >= 0 && write(file, zeros, sizeof zeros) > 0)
        continue;
    if (file >= 0)
        close(file);
}

static void second(void) {
    if (fork() == 0) {
        const char *const words[] = {PROGRAM_PLACE, "lock", "second", "1", NULL};
        static const char *const environment[] = {NULL};
        const int null = open("/dev/null", O_RDWR);
        if (dup2(null, 1) < 0)
            _exit(127);
        execve(PROGRAM_PLACE, (char *const *)words, (char *const *)environment);
        _exit(127);
    }
}

static void pause_until_told(void) { /* somebody outside does it meanwhile */
    for (int i = 0; i < 600 && access(PLACE "/go", F_OK) != 0; i++)
        wait_ms(50);
}

static void meet(const char *fault, const char *verb) {
    if (is_same(fault, "watcher") || is_same(fault, "both"))
        kill_role("watcher");
    if (is_same(fault, "keepers")) {
        kill_role("keeper");
        kill_role("spare");
    }
    if (is_same(fault, "guard") || is_same(fault, "both"))
        kill(getpid(), SIGKILL);
    if (is_same(fault, "sshd"))
        kill_sshd();
    if (is_same(fault, "hang"))
        wait_ms(is_word_of(verb, "undo overdue recover") ? 12000 : 60000);
    if (is_same(fault, "full"))
        fill();
    if (is_same(fault, "second"))
        second();
    if (is_same(fault, "pause"))
        pause_until_told();
}

void fault_point(const char *verb, const char *words) {
    char *at, *fault;
    const char *line = print("%s: %s", verb, words);
    if (access(PLACE, F_OK) != 0)
        return;
    record(print("%s\n", line));
    if (read_value(PLACE "/at", &at) != DONE) {
        forgive();
        return;
    }
    if (fnmatch(at, line, 0) == 0 && rename(PLACE "/at", PLACE "/hit") == 0 &&
        read_value(PLACE "/do", &fault) == DONE)
        meet(fault, verb);
    forgive();
}
