/* The longest wake-up the CPUs may need [us]: it holds while a process keeps TARGET (/dev/cpu_dma_latency)
 * open. */
#include "guard/kind/pm_qos.h"

#include "guard/answer.h"
#include "guard/fault.h"
#include "guard/file.h"
#include "guard/kind.h"
#include "guard/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define UNLIMITED "unlimited"
#define NOTE "pm_qos"

enum { WAIT_STEPS = 200, STEP_MS = 25 };

bool pm_qos_in_service;

static enum outcome limit_of(const char *value, uint64_t *limit) {
    return bytes_number((struct bytes){value, strlen(value)}, INT32_MAX, limit) ? DONE : FAILED;
}

/* Whether a process is our own program with these words, so that nobody else's is taken for it. */
static enum outcome holds(uint64_t pid, const char *device, const char *limit, bool *is) {
    struct text line = {0};
    const char *known = print("%s hold %s %s", PROGRAM_PLACE, device, limit);
    *is = false;
    if (kill((pid_t)pid, 0) != 0 && errno == ESRCH)
        return DONE;
    if (read_any(print("/proc/%d/cmdline", (int)pid), &line) != DONE)
        return FAILED;
    for (size_t i = 0; i + 1 < line.size; i++)
        if (line.at[i] == 0)
            line.at[i] = ' ';
    *is = line.size == strlen(known) + 1 && is_same(line.at, known);
    return DONE;
}

/* What holds it: 0 and UNLIMITED where nothing does. The note of it is not in /run, which somebody may wipe:
 * it would hold on, and nobody would know. */
static enum outcome holder(const char *device, uint64_t *pid, const char **limit) {
    struct text text = {0};
    bool is;
    *pid = 0;
    *limit = UNLIMITED;
    if (!is_there(state_place(), NOTE))
        return DONE;
    if (read_own(state_place(), NOTE, &text) != DONE)
        return FAILED;
    struct bytes rest = {text_string(&text), text.size}, word, line;
    uint64_t number;
    if (!cut(&rest, '\n', &line) || !cut(&line, ' ', &word) || !bytes_number(word, INT32_MAX, &number) ||
        !number)
        return complain("who holds %s is not known: %s/" NOTE " is damaged", device, STATE_PLACE);
    const char *said = keep(line.at, line.size);
    if (holds(number, device, said, &is) != DONE)
        return FAILED;
    if (is) {
        *pid = number;
        *limit = said;
    }
    return DONE;
}

static enum outcome save(const struct step *step, struct state *state) {
    uint64_t pid;
    const char *limit;
    if (access(step->target, W_OK) != 0)
        return complain("there is no %s that can be written", step->target);
    if (holder(step->target, &pid, &limit) != DONE)
        return FAILED;
    state_add(state, "limit", limit);
    return DONE;
}

/* It outlives the unit or the connection of whoever starts it; in a service that keeps settings it is a part
 * of that. */
static enum outcome start_holder(const char *device, const char *value) {
    if (access("/run/systemd/system", F_OK) == 0 && !pm_qos_in_service && !fault_bare()) {
        const char *unit = print("--unit=wulf-latency-%d-%lld", (int)getpid(), (long long)now_ms());
        if (RUN("systemd-run", "--quiet", "--collect", unit, PROGRAM_PLACE, "hold", device, value) == DONE)
            return DONE;
        forgive();
    }
    return start_own((const char *const[]){PROGRAM_PLACE, "hold", device, value, NULL});
}

/* A new one, which ends the one before it: a guard that is ended meanwhile leaves no two. */
static enum outcome hold(const struct step *step, const char *value, uint64_t former) {
    uint64_t pid;
    const char *limit;
    remove_own(run_place(), NOTE ".refused");
    if (start_holder(step->target, value) != DONE)
        return FAILED;
    for (int i = 0; i < WAIT_STEPS; i++) {
        if (holder(step->target, &pid, &limit) == DONE && pid != former && is_same(limit, value))
            return DONE;
        forgive();
        if (is_there(run_place(), NOTE ".refused"))
            break;
        wait_ms(STEP_MS);
    }
    return complain("%s does not take %s", step->target, value);
}

static enum outcome set(const struct step *step, const char *value) {
    uint64_t pid, limit;
    const char *before;
    if (!is_same(value, UNLIMITED) && limit_of(value, &limit) != DONE)
        return complain("%s does not take %s", step->target, value);
    if (explaining) {
        say_line("a process holds %s open with %s written to it", step->target, value);
        return DONE;
    }
    if (holder(step->target, &pid, &before) != DONE)
        return FAILED;
    if (!is_same(value, UNLIMITED))
        return hold(step, value, pid);
    if (pid)
        kill((pid_t)pid, SIGKILL);
    remove_own(state_place(), NOTE);
    return DONE;
}

static enum outcome put(const struct step *step) { return set(step, step->value); }

static enum outcome restore(const struct step *step, const struct state *items, const struct state *before,
                            const struct state *after) {
    (void)before;
    (void)after;
    const char *value = state_value(items, "limit");
    return value ? set(step, value) : DONE;
}

/* The kernel takes ten characters of hexadecimal text. The device is open as long as we sleep. */
void pm_qos_hold(const char *device, const char *value) {
    uint64_t limit = 0, former;
    const char *before;
    const int file = open(device, O_WRONLY | O_NOFOLLOW);
    const bool known =
        file >= 0 && limit_of(value, &limit) == DONE && holder(device, &former, &before) == DONE;
    const char *text = print("0x%08llx", (unsigned long long)limit);
    const bool good = known && write(file, text, strlen(text)) == (ssize_t)strlen(text);
    if (!good || store_or_spare(state_place(), NOTE, print("%d %s\n", (int)getpid(), value), true) != DONE) {
        if (store(run_place(), NOTE ".refused", "", 0, false) != DONE)
            _exit(EXIT_FAILED);
        _exit(EXIT_FAILED);
    }
    if (former)
        kill((pid_t)former, SIGKILL);
    /* It is known by this descriptor, and needs no other. */
    if (dup2(file, 3) == 3 && syscall(SYS_close_range, 4U, ~0U, 0U) != 0)
        errno = 0;
    for (;;)
        pause();
}

const struct kind kind_pm_qos = {.save = save, .put = put, .restore = restore};
