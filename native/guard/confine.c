#include "guard/confine.h"

#include "guard/fault.h"
#include "guard/settle.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { VALUES = 65536, WHY = 400, TARGET = 256, INTERFACE = 16, MEMORY = 256 << 20, CPU_S = 10 };

struct read_step {
    uint32_t form, row, value_at, value_size;
    char interface[INTERFACE], path[TARGET]; /* a path of a file alone */
};

struct record {
    uint32_t mark, count, size; /* how many steps, and bytes of their values */
    struct read_step steps[PLAN_LINES];
    char values[VALUES], why[WHY];
};

/* --- the process without rights --- */

#if defined __x86_64__
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#ifdef ARCHITECTURE
#define ALLOW(call)                                                                                          \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))

/* To read what is open, to have memory, and to end. A kernel without such filters has the rest alone. */
static enum outcome allow_reading_alone(void) {
    static struct sock_filter rules[] = {
        LOAD(arch),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        LOAD(nr),
        ALLOW(read),
#ifdef SYS_poll
        ALLOW(poll),
#endif
        ALLOW(ppoll),
        ALLOW(clock_gettime),
        ALLOW(mmap),
        ALLOW(exit_group),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    static const struct sock_fprog program = {COUNT(rules), rules};
    const bool set = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0U, &program) == 0;
    return set || errno == ENOSYS || errno == EINVAL ? DONE : FAILED;
}
#else
static enum outcome allow_reading_alone(void) { return DONE; }
#endif

static enum outcome limit(int which, rlim_t most) {
    const struct rlimit both = {most, most};
    return setrlimit(which, &both) == 0 ? DONE : FAILED;
}

static enum outcome confine(uid_t caller, pid_t parent) {
    if (syscall(SYS_close_range, 3U, ~0U, 0U) != 0)
        for (int file = 3; file < 1024; file++)
            close(file);
    if (give_up_rights(caller) != DONE || limit(RLIMIT_NPROC, 0) != DONE || limit(RLIMIT_FSIZE, 0) != DONE ||
        limit(RLIMIT_NOFILE, 1) != DONE || limit(RLIMIT_AS, MEMORY) != DONE ||
        limit(RLIMIT_CPU, CPU_S) != DONE)
        return FAILED;
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 ||
        getppid() != parent)
        return FAILED;
    return allow_reading_alone();
}

static enum outcome record_step(const struct step *step, struct record *record) {
    struct read_step *one = &record->steps[record->count];
    const size_t size = strlen(step->value);
    struct listed listed;
    if (!step->known)
        return complain("this guard knows no access kind %s", step->kind_name);
    if (in_catalogue(step, &listed) != DONE)
        return FAILED;
    const char *path = listed.form == OF_FILE ? step->target : "";
    if (strlen(step->interface) >= INTERFACE || strlen(path) >= TARGET || size > VALUES - record->size)
        return complain("%s is longer than any step is", step->knob);
    *one = (struct read_step){listed.form, 0, record->size, (uint32_t)size, "", ""};
    if (listed.row)
        one->row = (uint32_t)knob_number(listed.row);
    strcpy(one->interface, step->interface);
    strcpy(one->path, path);
    memcpy(record->values + record->size, step->value, size);
    record->size += (uint32_t)size;
    record->count++;
    return DONE;
}

static enum outcome read_all(const char *forms, const char *const words[], uid_t caller, bool has_plan,
                             struct record *record) {
    struct plan plan = {0};
    if (check_words(forms, words, caller) != GRANTED)
        return FAILED;
    if (has_plan && read_plan_from_input(caller, &plan) != DONE)
        return complain("not through sudo: %s", complaint("there is no plan"));
    for (size_t i = 0; i < plan.count; i++)
        if (record_step(&plan.steps[i], record) != DONE)
            return complain("not through sudo: %s", complaint("it is not in the catalogue"));
    return DONE;
}

/* --- and who checks what it says --- */

static bool ends(const char *text, size_t room) { return memchr(text, 0, room) != NULL; }

/* The line of the plan that a record says, made of the row; FAILED where there is none like it. */
static enum outcome add_line(const struct record *record, const struct read_step *one, struct text *lines) {
    const struct known_knob *row = knob_numbered(one->row);
    if (!row || !ends(one->interface, INTERFACE) || !ends(one->path, TARGET) || one->value_at > VALUES ||
        one->value_size > VALUES - one->value_at)
        return FAILED;
    const char *value = keep(record->values + one->value_at, one->value_size);
    if (one->form == OF_FILE)
        text_print(lines, "%s\tstored\t-\t%s\t%s\n", one->path, one->path, value);
    else if (one->form == OF_UNIT)
        text_print(lines, "%s\tunit\t-\t%s\t%s\n", row->target, row->target, value);
    else if (one->form == OF_ROW)
        text_print(lines, "%s\t%s\t%s\t%s\t%s\n", row->knob, row->kind, one->interface,
                   replaced(row->target, "INTERFACE", one->interface), value);
    else
        return FAILED;
    return DONE;
}

/* Through the same grammar again: what a line is of cannot be written so that there are more. */
static enum outcome check_record(const struct record *record, bool has_plan, struct plan *plan) {
    struct text lines = {0};
    *plan = (struct plan){0};
    if (record->mark != GRANTED || record->count > PLAN_LINES || has_plan != (record->count > 0))
        return FAILED;
    for (size_t i = 0; i < record->count; i++)
        if (add_line(record, &record->steps[i], &lines) != DONE)
            return FAILED;
    if (has_plan && (plan_read((struct bytes){text_string(&lines), lines.size}, plan) != DONE ||
                     plan->count != record->count))
        return FAILED;
    for (size_t i = 0; i < plan->count; i++)
        if (*plan->steps[i].value == '@')
            return FAILED;
    return DONE;
}

static _Noreturn void be_the_reader(const char *forms, const char *const words[], uid_t caller, bool has_plan,
                                    pid_t parent, struct record *record) {
    const char *fault = fault_of_reader();
    forgive();
    if (confine(caller, parent) != DONE)
        _exit(EXIT_ERROR);
    if (read_all(forms, words, caller, has_plan, record) == DONE)
        record->mark = GRANTED;
    strcpy(record->why, one_line(complaint(""), WHY - 1));
    fault_as_reader(fault, record, sizeof *record);
    _exit(GRANTED);
}

enum outcome read_confined(const char *forms, const char *const words[], uid_t caller, bool has_plan,
                           struct plan *plan) {
    static const char unread[] = "not through sudo: what is asked cannot be read";
    struct record *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return complain(unread);
    const pid_t parent = getpid(), child = fork();
    if (child == 0)
        be_the_reader(forms, words, caller, has_plan, parent, shared);
    int status = 0;
    pid_t ended;
    while ((ended = waitpid(child, &status, 0)) < 0 && errno == EINTR)
        continue;
    if (child < 0 || ended != child || !WIFEXITED(status) || WEXITSTATUS(status) != GRANTED)
        return complain(unread);
    struct record *record = take(sizeof *record);
    *record = *shared; /* nobody changes what is looked at */
    munmap(shared, sizeof *shared);
    if (record->mark != GRANTED && ends(record->why, WHY) && *record->why)
        return complain("%s", one_line(record->why, WHY));
    return check_record(record, has_plan, plan) == DONE ? DONE : complain(unread);
}
