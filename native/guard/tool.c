#include "guard/tool.h"

#include "guard/answer.h"
#include "guard/file.h"
#include "guard/read/cursor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    LIMIT_MS = 40000,
    LOOK_MS = 10000,
    MOST_HANGS = 2,
    MOST_OUTPUT = 16 << 20,
    MOST_ERRORS = 65536,
    SHOWN_ERRORS = 4096
};

#define TOOL_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define MARK "WULF_TOOL="

bool explaining, only_looking;
static const char *tools_mark = MARK "none";

static const char *const PLACES[] = {
    "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/lib64/openmpi/bin"};
static const char *const TOOLS =
    "ethtool ip nft modprobe systemctl systemd-run tuned-adm ompi_info iptables-legacy iptables-legacy-save "
    "ip6tables-legacy ip6tables-legacy-save";

static bool is_roots_alone(const char *path) {
    char *real = realpath(path, NULL);
    struct stat about;
    bool good = real && stat(real, &about) == 0 && S_ISREG(about.st_mode) && about.st_uid == 0 &&
                (about.st_mode & 022) == 0 && (about.st_mode & 0100) != 0;
    if (good) {
        *strrchr(real, '/') = 0;
        good = !is_open_to_others(real);
    }
    free(real);
    return good;
}

const char *tool_path(const char *name) {
    if (!is_word_of(name, TOOLS))
        return NULL;
    for (size_t i = 0; i < COUNT(PLACES); i++) {
        const char *path = print("%s/%s", PLACES[i], name);
        if (access(path, X_OK) == 0 && is_roots_alone(path))
            return path;
    }
    return NULL;
}

/* What it says and what it complains of are two things: a warning would come into the middle of a listing. */
struct running {
    pid_t pid;
    int output, errors;
};

static _Noreturn void become_tool(const char *path, const char *const words[], int input, int output,
                                  int errors, pid_t parent) {
    /* Without a home ompi_info of Open MPI 5 says nothing, and ends with 0. Nobody has settings in /. */
    const char *const all[] = {"LC_ALL=C", "PATH=" TOOL_PATH, "HOME=/", tools_mark, NULL};
    setpgid(0, 0);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || getppid() != parent)
        _exit(127);
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (dup2(input, 0) < 0 || dup2(output, 1) < 0 || dup2(errors, 2) < 0)
        _exit(127);
    if (syscall(SYS_close_range, 3U, ~0U, 0U) != 0)
        for (int file = 3; file < 1024; file++)
            close(file);
    umask(022);
    execve(path, (char *const *)words, (char *const *)all);
    _exit(127);
}

/* Only so much of what it complains of is kept: memory is not for one that does nothing else. */
static int room_for_errors(void) {
    const int file = memfd_create("errors", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (file >= 0 && (ftruncate(file, MOST_ERRORS) != 0 || fcntl(file, F_ADD_SEALS, F_SEAL_GROW) != 0)) {
        close(file);
        return -1;
    }
    return file;
}

static int input_of(const char *text) {
    if (!text)
        return open("/dev/null", O_RDONLY | O_CLOEXEC);
    const int file = memfd_create("input", MFD_CLOEXEC);
    const size_t size = strlen(text);
    if (file >= 0 && (write(file, text, size) != (ssize_t)size || lseek(file, 0, SEEK_SET) != 0)) {
        close(file);
        return -1;
    }
    return file;
}

static void close_all(int one, int other) {
    if (one >= 0)
        close(one);
    if (other >= 0)
        close(other);
}

static int limit_ms(void) { return only_looking ? LOOK_MS : LIMIT_MS; }

/* A driver that hangs does so for each of its settings: the others are not kept waiting for all of them. */
static struct text hung;

static bool hangs(const char *name) {
    int times = only_looking ? MOST_HANGS - 1 : 0;
    struct bytes rest = {text_string(&hung), hung.size}, word;
    while (next_word(&rest, &word))
        times += bytes_are(word, name);
    return times >= MOST_HANGS;
}

static enum outcome start(struct running *running, const char *input, const char *const words[]) {
    const char *path = tool_path(words[0]);
    if (!path)
        return complain("%s is not installed", words[0]);
    if (hangs(words[0]))
        return complain("%s: it is not asked again, as it did not end in time", words[0]);
    int ends[2];
    const int in = input_of(input);
    running->errors = room_for_errors();
    if (in < 0 || running->errors < 0 || pipe2(ends, O_CLOEXEC) != 0) {
        const enum outcome failed = complain("%s cannot be started: %s", words[0], strerror(errno));
        close_all(in, running->errors);
        return failed;
    }
    const pid_t parent = getpid();
    running->pid = fork();
    if (running->pid == 0)
        become_tool(path, words, in, ends[1], running->errors, parent);
    close_all(in, ends[1]);
    running->output = ends[0];
    if (running->pid < 0) {
        const enum outcome failed = complain("%s cannot be started: %s", words[0], strerror(errno));
        close_all(ends[0], running->errors);
        return failed;
    }
    return DONE;
}

/* Its output until it ends; FAILED when it takes too long or says too much. */
static enum outcome hear(const struct running *running, struct text *said) {
    const int64_t until = now_ms() + limit_ms();
    static char block[65536];
    for (;;) {
        const int64_t left = until - now_ms();
        struct pollfd one = {running->output, POLLIN, 0};
        const int ready = left > 0 ? poll(&one, 1, (int)left) : 0;
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return complain("it takes longer than %d s", limit_ms() / 1000);
        const ssize_t got = read(running->output, block, sizeof block);
        if (got == 0)
            return DONE;
        if (got < 0)
            return complain("%s", strerror(errno));
        if (said->size + (size_t)got > MOST_OUTPUT)
            return complain("it says more than %d MiB", MOST_OUTPUT >> 20);
        text_add(said, block, (size_t)got);
    }
}

/* A tool that goes on after it has closed its output, or whose child has that open, is waited for as long. */
static enum outcome reap(const struct running *running, int *status) {
    const int64_t until = now_ms() + limit_ms();
    for (int pause_ms = 0;; pause_ms = pause_ms < 20 ? pause_ms + 1 : 20) {
        const pid_t ended = waitpid(running->pid, status, WNOHANG);
        if (ended == running->pid)
            return DONE;
        if ((ended < 0 && errno != EINTR) || now_ms() >= until)
            return FAILED;
        wait_ms(pause_ms ? pause_ms : 0);
    }
}

/* The beginning of it is enough for people. */
static void add_errors(int file, struct text *errors) {
    char block[SHOWN_ERRORS];
    const ssize_t got = pread(file, block, sizeof block, 0);
    for (ssize_t i = 0; i < got; i++)
        if (block[i])
            text_add(errors, &block[i], 1);
}

static enum outcome ended(struct text *said, struct text *errors, int *code, const char *input,
                          const char *const words[]) {
    struct running running = {-1, -1, -1};
    if (start(&running, input, words) != DONE)
        return FAILED;
    const int64_t begun = now_ms();
    const enum outcome heard = hear(&running, said);
    if (heard != DONE)
        kill(-running.pid, SIGKILL);
    int status = 0;
    const enum outcome reaped = reap(&running, &status);
    if (now_ms() - begun >= limit_ms())
        text_print(&hung, "%s ", words[0]);
    add_errors(running.errors, errors);
    close_all(running.output, running.errors);
    if (reaped != DONE || heard != DONE || !WIFEXITED(status)) {
        kill(-running.pid, SIGKILL);
        return complain("%s: %s", words[0], complaint("it was ended"));
    }
    if (said->size && memchr(said->at, 0, said->size))
        return complain("%s: what it says is not text", words[0]);
    *code = WEXITSTATUS(status);
    return DONE;
}

enum outcome tool_code(struct text *said, int *code, const char *const words[]) {
    struct text errors = {0};
    const enum outcome outcome = ended(said, &errors, code, NULL, words);
    text_word(said, text_string(&errors));
    return outcome;
}

enum outcome tool_said(struct text *said, const char *input, const char *const words[]) {
    struct text errors = {0};
    int code;
    if (ended(said, &errors, &code, input, words) != DONE)
        return FAILED;
    if (code == 0)
        return DONE;
    const struct text *why = errors.size ? &errors : said;
    return complain("%s", why->size ? one_line(why->at, 300) : print("%s ended with %d", words[0], code));
}

enum outcome tool_ask(struct text *said, const char *const words[]) { return tool_said(said, NULL, words); }

enum outcome tool_list(struct text *said, const char *which, const char *const words[]) {
    struct text version = {0};
    if (tool_ask(said, words) != DONE)
        return FAILED;
    if (!said->size && (ASK(&version, words[0], which) != DONE || !version.size))
        return complain("%s says nothing, not even which version it is", words[0]);
    return DONE;
}

/* Shown with its words as they are: none of them has anything that a shell would take for its own. */
static void explain(const char *input, const char *const words[]) {
    struct text line = {0};
    for (size_t i = 0; words[i]; i++)
        text_print(&line, "%s%s", i ? " " : "", words[i]);
    if (input)
        text_print(&line, " <<'END'\n%sEND", input);
    say_line("%s", text_string(&line));
}

enum outcome tool_run(const char *input, const char *const words[]) {
    if (explaining) {
        explain(input, words);
        return DONE;
    }
    struct text said = {0};
    return tool_said(&said, input, words);
}

enum outcome set_value(const char *path, const char *value) {
    if (explaining) {
        const bool writable = access(path, W_OK) == 0;
        say_line("echo '%s' >%s%s", value, path, writable ? "" : "   # it cannot be written here");
        return DONE;
    }
    const int file = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    const char *line = print("%s\n", value);
    const ssize_t size = (ssize_t)strlen(line);
    const bool good = file >= 0 && write(file, line, (size_t)size) == size;
    const int why = errno;
    const bool closed = file < 0 || close(file) == 0;
    return good && closed ? DONE
                          : complain("%s does not take '%s' (%s)", path, one_line(value, 80), strerror(why));
}

void mark_tools(const char *mark) { tools_mark = print(MARK "%s", mark); }

/* What others have in their memory is not read: who shares it with a file system of his own could keep us
 * waiting for ever. */
static bool is_roots(const char *pid) {
    struct text text = {0};
    struct bytes line;
    if (read_any(print("/proc/%s/status", pid), &text) != DONE)
        return false;
    for (struct bytes rest = {text_string(&text), text.size}; next_line(&rest, &line);)
        if (bytes_begin(line, "Uid:"))
            return bytes_begin(line, "Uid:\t0\t");
    return false;
}

void end_marked(const char *mark) {
    const char *wanted = print(MARK "%s", mark);
    const struct names names = names_in(AT_FDCWD, "/proc");
    for (size_t i = 0; i < names.count; i++) {
        const pid_t pid = (pid_t)strtol(names.at[i], NULL, 10);
        struct text environment = {0};
        if (pid <= 1 || pid == getpid() || !is_roots(names.at[i]) ||
            read_any(print("/proc/%d/environ", (int)pid), &environment) != DONE)
            continue;
        for (size_t at = 0; at < environment.size; at += strlen(environment.at + at) + 1)
            if (is_same(environment.at + at, wanted))
                kill(pid, SIGKILL);
    }
    forgive();
}

enum outcome start_own(const char *const words[]) {
    const pid_t child = fork();
    if (child < 0)
        return complain("no process can be started: %s", strerror(errno));
    if (child == 0) {
        static const char *const environment[] = {NULL};
        const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (setsid() < 0 || null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0 ||
            fork() != 0)
            _exit(0);
        if (syscall(SYS_close_range, 3U, ~0U, 0U) != 0)
            for (int file = 3; file < 1024; file++)
                close(file);
        execve("/proc/self/exe", (char *const *)words, (char *const *)environment);
        _exit(127);
    }
    int status;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return DONE;
}
