#include "guard/settle.h"

#include "guard/base.h"
#include "guard/file.h"
#include "guard/read/cursor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

extern char **environ;

static _Noreturn void unsettled(const char *what) {
    static const char start[] = "error\tcannot begin: ";
    /* Nothing can be done for who does not hear this: the exit code says it, too. */
    if (write(STDOUT_FILENO, start, sizeof start - 1) < 0 || write(STDOUT_FILENO, what, strlen(what)) < 0 ||
        write(STDOUT_FILENO, "\n", 1) < 0)
        _exit(EXIT_ERROR);
    _exit(EXIT_ERROR);
}

/* A descriptor below 3 that is closed would be that of the next file. */
static void have_descriptors(void) {
    for (;;) {
        const int file = open("/dev/null", O_RDWR);
        if (file < 0)
            _exit(EXIT_ERROR);
        if (file > 2) {
            close(file);
            break;
        }
    }
    if (syscall(SYS_close_range, 3U, ~0U, 0U) == 0)
        return;
    DIR *directory = opendir("/proc/self/fd"); /* a kernel before 5.9 */
    if (!directory)
        unsettled("its descriptors cannot be closed");
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        const int file = (int)strtol(entry->d_name, NULL, 10);
        if (file > 2 && file != dirfd(directory))
            close(file);
    }
    closedir(directory);
}

/* Who called, from the one variable that is read, and no variables. */
static uid_t take_environment(void) {
    const char *said = NULL;
    for (char **one = environ; one && *one; one++)
        if (strncmp(*one, "SUDO_UID=", 9) == 0)
            said = *one + 9;
    environ = NULL;
    if (!said)
        return 0;
    uint64_t number = 0;
    for (const char *at = said; *at; at++) {
        if (*at < '0' || *at > '9' || number > UINT32_MAX)
            return UID_UNKNOWN;
        number = number * 10 + (uint64_t)(*at - '0');
    }
    return *said && number < UINT32_MAX ? (uid_t)number : UID_UNKNOWN;
}

/* A caller's terminal must not stop who has the lock: its letters go to all that it has in the foreground. */
static bool is_ignored(int number) {
    return number == SIGHUP || number == SIGPIPE || number == SIGXFSZ || number == SIGTSTP ||
           number == SIGTTIN || number == SIGTTOU;
}

static void reset_signals(void) {
    for (int number = 1; number < NSIG; number++) {
        const bool ignored = is_ignored(number);
        struct sigaction action = {.sa_handler = ignored ? SIG_IGN : SIG_DFL};
        if (sigaction(number, &action, NULL) != 0 && ignored)
            unsettled("a signal cannot be ignored");
    }
    sigset_t none;
    sigemptyset(&none);
    if (sigprocmask(SIG_SETMASK, &none, NULL) != 0)
        unsettled("its signals stay blocked");
}

static void raise_limit(int which, rlim_t least, const char *name) {
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    if (setrlimit(which, &limit) == 0)
        return;
    if (getrlimit(which, &limit) != 0)
        unsettled(name);
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(which, &limit) != 0 || getrlimit(which, &limit) != 0 || limit.rlim_cur < least)
        unsettled(name);
}

static void reset_limits(void) {
    const rlim_t gibibyte = (rlim_t)1 << 30;
    raise_limit(RLIMIT_AS, gibibyte, "its address space is limited");
    raise_limit(RLIMIT_DATA, gibibyte, "its memory is limited");
    raise_limit(RLIMIT_FSIZE, gibibyte, "the size of its files is limited");
    raise_limit(RLIMIT_CPU, RLIM_INFINITY, "its time is limited");
    struct rlimit stack = {(rlim_t)8 << 20, RLIM_INFINITY};
    if (setrlimit(RLIMIT_STACK, &stack) != 0)
        raise_limit(RLIMIT_STACK, (rlim_t)1 << 20, "its stack is limited");
    raise_limit(RLIMIT_NPROC, 64, "its processes are limited");
    static const int others[] = {RLIMIT_LOCKS,  RLIMIT_SIGPENDING, RLIMIT_MSGQUEUE,
                                 RLIMIT_RTTIME, RLIMIT_MEMLOCK,    RLIMIT_RSS};
    for (size_t i = 0; i < COUNT(others); i++) /* of the tools, as far as they may be raised */
        raise_limit((int)others[i], 0, "a limit cannot be read");
    struct rlimit files = {1024, 4096}, none = {0, 0};
    if (setrlimit(RLIMIT_NOFILE, &files) != 0) {
        files.rlim_max = 1024;
        if (setrlimit(RLIMIT_NOFILE, &files) != 0)
            unsettled("its descriptors are limited");
    }
    if (setrlimit(RLIMIT_CORE, &none) != 0)
        unsettled("it would leave its memory in a file");
}

/* Timers go on over an exec, and their signals end a program. */
static void stop_timers(void) {
    static const struct itimerval none;
    static const int which[] = {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF};
    for (size_t i = 0; i < COUNT(which); i++)
        if (setitimer(which[i], &none, NULL) != 0)
            unsettled("its timers cannot be stopped");
}

/* On the CPUs that the system gives to its own processes: a caller may have left one, and a site may keep
 * some free of all that is not asked for. */
static void run_where_others_do(void) {
    static unsigned char cpus[1024];
    const long size = syscall(SYS_sched_getaffinity, 1, sizeof cpus, cpus);
    if (size > 0 && syscall(SYS_sched_setaffinity, 0, (size_t)size, cpus) != 0)
        errno = 0; /* those of its cgroup are what it has */
}

/* In the cgroup of the system's first process: one that a user has been given he may freeze, and with it who
 * has the lock. */
static void leave_cgroup(void) {
    static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
    char *path = NULL;
    struct text text = {0};
    struct bytes line;
    if (read_any("/proc/1/cgroup", &text) != DONE)
        forgive();
    for (struct bytes rest = {text_string(&text), text.size}; next_line(&rest, &line);)
        if (bytes_begin(line, "0::/"))
            path = keep(line.at + strlen("0::"), line.size - strlen("0::"));
    for (size_t i = 0; path && i < COUNT(roots); i++) {
        const int file = open(print("%s%s/cgroup.procs", roots[i], path), O_WRONLY | O_CLOEXEC);
        if (file >= 0 && write(file, "0", 1) != 1)
            errno = 0; /* in a container that may not; then it cannot be frozen by a user either */
        if (file >= 0)
            close(file);
    }
}

/* Who is to be ended first when memory is short. */
static void be_no_first_victim(void) {
    const int file = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
    char first = '-';
    if (file >= 0 && read(file, &first, 1) == 1 && first != '-' && write(file, "0", 1) != 1)
        errno = 0; /* where it may not be lowered */
    if (file >= 0)
        close(file);
}

/* What a program inherits beyond limits, and any user may set for his own: the watchers must not have it, and
 * tools must not find another kernel than there is (UNAME26). */
static void reset_inherited(void) {
    enum { OF_PROCESS = 1, SLACK_NS = 50000 };
    const struct sched_param usual = {0};
    stop_timers();
    if (personality(PER_LINUX) == -1 || personality(0xffffffff) != PER_LINUX)
        unsettled("its personality cannot be set");
    if (sched_setscheduler(0, SCHED_OTHER, &usual) != 0)
        unsettled("how it is scheduled cannot be set");
    if (prctl(PR_SET_TIMERSLACK, SLACK_NS, 0, 0, 0) != 0)
        unsettled("its timers would be late");
    /* Kernels without these have nothing of it to inherit. */
    if (syscall(SYS_ioprio_set, OF_PROCESS, 0, 0) != 0 || syscall(SYS_set_mempolicy, 0, NULL, 0) != 0)
        errno = 0;
    run_where_others_do();
    be_no_first_victim();
}

static void become_root(uid_t caller) {
    if (geteuid() != 0)
        unsettled("changing settings takes root");
    reset_limits();
    reset_inherited();
    if (caller)
        leave_cgroup();
    errno = 0;
    if (setpriority(PRIO_PROCESS, 0, 0) != 0 && errno != EACCES && errno != EPERM)
        unsettled("its priority cannot be set");
    if (setgroups(0, NULL) != 0 && errno != EPERM)
        unsettled("its groups cannot be left");
    if (setresgid(0, 0, 0) != 0 || setresuid(0, 0, 0) != 0)
        unsettled("it cannot become root");
}

enum outcome give_up_rights(uid_t caller) {
    enum { NOBODY = 65534 };
    uid_t real = 0, effective = 0, saved = 0;
    if (!caller || geteuid() != 0)
        return DONE;
    if (setgroups(0, NULL) != 0 || setresgid(NOBODY, NOBODY, NOBODY) != 0 ||
        setresuid(NOBODY, NOBODY, NOBODY) != 0 || getresuid(&real, &effective, &saved) != 0 ||
        real != NOBODY || effective != NOBODY || saved != NOBODY)
        return complain("root's rights cannot be given up");
    return DONE;
}

uid_t settle(bool as_root) {
    have_descriptors();
    const uid_t caller = take_environment();
    if (chdir("/") != 0)
        unsettled("there is no /");
    umask(077);
    reset_signals();
    if (as_root)
        become_root(caller);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
        unsettled("its rights cannot be fixed");
    return caller;
}
