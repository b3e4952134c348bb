#include "guard/alternation.h"

#include "guard/answer.h"
#include "guard/back.h"
#include "guard/change.h"
#include "guard/kind/mpi.h"
#include "guard/lock.h"
#include "guard/tool.h"
#include "guard/undo.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PLACE "/run/wulf-alternation" /* who measures may not look into /run/wulf */

enum { IDLE_MS = 30000, ANSWER_MS = 2000, SHOWN = 200 };

static bool has(const char *steps, size_t number) {
    struct bytes rest = {steps, strlen(steps)}, one;
    uint64_t found;
    for (bool more = true; more;) {
        more = cut(&rest, ',', &one);
        if (bytes_number(more ? one : rest, 65535, &found) && found == number)
            return true;
    }
    return false;
}

static void require_steps(const char *tx, const char *steps, const struct plan *plan) {
    struct bytes rest = {steps, strlen(steps)}, one;
    uint64_t number;
    for (bool more = true; more;) {
        more = cut(&rest, ',', &one);
        const struct bytes word = more ? one : rest;
        if (!bytes_number(word, plan->count, &number))
            fail(EXIT_ERROR, "%s has no step %s", tx, one_line(keep(word.at, word.size), 40));
    }
}

static struct plan open_plan(const char *tx) {
    struct plan plan;
    require_open(tx, "applied");
    require_own(tx);
    const struct soundness soundness = soundness_of(tx);
    if (!is_sound(&soundness) || plan_of(tx, &plan) != DONE)
        fail(EXIT_FAILED, "the journal of %s is damaged: %s", tx, soundness.damaged);
    const char *another = another_device(tx, &plan);
    if (another)
        fail(EXIT_FAILED, "%s", another);
    return plan;
}

/* Put a step back whoever has it now: it is in our hands while the change is open. */
static void take_back(const char *tx, const struct step *step) {
    struct back back;
    if (back_of_step(tx, step, &back) != DONE || !step->known)
        fail(EXIT_FAILED, "%s: what was before it is damaged in the journal", step->knob);
    back_look(&back);
    if (put_back(&back) != DONE)
        fail(EXIT_FAILED, "%s: %s", step->knob, one_line(complaint("it is not as before"), SHOWN));
    back_say_left(&back);
}

/* Make these steps, and put the others back; `made` are those that are made, or NULL where that is not known.
 */
static void make_part(const char *tx, const struct plan *plan, const char *steps, const char *made) {
    const struct step **order = undo_order(plan);
    for (size_t i = 0; i < plan->count; i++)
        if ((!made || has(made, order[i]->number)) && !has(steps, order[i]->number))
            take_back(tx, order[i]);
    for (size_t i = 0; i < plan->count; i++) {
        const struct step *step = &plan->steps[i];
        if (!has(steps, step->number) || (made && has(made, step->number)))
            continue;
        if (put_step(tx, step) != DONE)
            fail(EXIT_FAILED, "%s=%s: %s", step->knob, one_line(step->value, 60),
                 one_line(complaint("it was refused"), SHOWN));
        save_after(tx, step); /* a file is another one now, and a rule has another handle */
    }
}

void part(const char *tx, const char *steps) {
    const struct plan plan = open_plan(tx);
    struct text made = {0};
    const char *name = print("part.%s", tx);
    require_steps(tx, steps, &plan);
    const bool known = read_own(run_place(), name, &made) == DONE && made.size > 1;
    forgive();
    end_alternation(tx); /* also makes it unknown which part is made: until it is */
    make_part(tx, &plan, steps, known ? keep(made.at, made.size - 1) : NULL);
    if (keep_in_run(name, steps) != DONE)
        forgive();
}

static char *pipe_of(const char *tx, const char *what) { return print(PLACE "/%s.%s", tx, what); }

void alternate(const char *tx, const char *a, const char *b) {
    const struct plan plan = open_plan(tx);
    require_steps(tx, a, &plan);
    require_steps(tx, b, &plan);
    end_alternation(tx);
    const mode_t before = umask(022);
    if (mkdir(PLACE, 0755) != 0 && errno != EEXIST)
        fail(EXIT_ERROR, "cannot write to %s", PLACE);
    umask(before);
    struct stat about;
    if (lstat(PLACE, &about) != 0 || !S_ISDIR(about.st_mode) || about.st_uid != 0 ||
        (about.st_mode & 022) != 0 || mkfifo(pipe_of(tx, "ask"), 0600) != 0 ||
        mkfifo(pipe_of(tx, "answer"), 0600) != 0 || chown(pipe_of(tx, "ask"), caller, (gid_t)-1) != 0 ||
        chown(pipe_of(tx, "answer"), caller, (gid_t)-1) != 0)
        fail(EXIT_ERROR, "cannot write to %s", PLACE);
    if (start_own((const char *const[]){PROGRAM_PLACE, "alternating", tx, a, b, NULL}) != DONE)
        fail(EXIT_ERROR, "%s", complaint("no process can be started"));
    SAY("place", print(PLACE "/%s", tx));
}

static void write_to(const char *path, const char *text, int within_ms) {
    const int64_t until = now_ms() + within_ms;
    int file;
    /* Who asked has it open; one that has gone must not keep anybody waiting. */
    while ((file = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW)) < 0 && errno == ENXIO &&
           now_ms() < until)
        wait_ms(2);
    if (file < 0)
        return;
    if (write(file, text, strlen(text)) < 0)
        errno = 0; /* it has gone */
    close(file);
}

void end_alternation(const char *tx) {
    struct stat about;
    remove_own(run_place(), print("part.%s", tx));
    if (lstat(pipe_of(tx, "ask"), &about) != 0)
        return;
    if (S_ISFIFO(about.st_mode))
        write_to(pipe_of(tx, "ask"), "end\n", 100);
    unlink(pipe_of(tx, "ask"));
    unlink(pipe_of(tx, "answer"));
    rmdir(PLACE);
}

/* Whether a pipe is still the one of its name: whoever has another part made has taken it away, or made a new
 * one. */
static bool is_still(int file, const char *path) {
    struct stat about, there;
    return fstat(file, &about) == 0 && lstat(path, &there) == 0 && about.st_ino == there.st_ino &&
           about.st_dev == there.st_dev;
}

/* In a process of its own, whose end says how it was. */
static _Noreturn void answer_request(int asked, const char *tx, const char *steps, const char *made) {
    exclusively(false);
    if (!is_still(asked, pipe_of(tx, "ask")))
        fail(EXIT_LATE, "another part of %s is made", tx);
    const struct plan plan = open_plan(tx);
    make_part(tx, &plan, steps, made);
    finish(EXIT_DONE);
}

/* What it says goes to `said`; whether it is done. */
static bool serve(int asked, const char *tx, const char *steps, const char *made, struct text *said) {
    int ends[2], status = 0;
    char block[1024];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    const pid_t child = fork();
    if (child == 0) {
        if (dup2(ends[1], STDOUT_FILENO) != STDOUT_FILENO)
            _exit(EXIT_ERROR);
        answer_request(asked, tx, steps, made);
    }
    close(ends[1]);
    for (ssize_t got; child > 0 && (got = read(ends[0], block, sizeof block)) > 0;)
        if (said->size < 4096)
            text_add(said, block, (size_t)got);
    close(ends[0]);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_DONE;
}

/* The letter that is asked for; 0 when nobody asks any more, or somebody says that it is over. */
static char wait_for_letter(int file) {
    struct pollfd one = {file, POLLIN, 0};
    char line[64];
    if (poll(&one, 1, IDLE_MS) != 1)
        return 0;
    const ssize_t size = read(file, line, sizeof line);
    return size >= 1 && (line[0] == 'a' || line[0] == 'b') && (size == 1 || line[1] == '\n') ? line[0]
                                                                                             : (char)0;
}

void alternating(const char *tx, const char *a, const char *b) {
    const char *made = NULL; /* an earlier launch may have ended under either */
    /* Open for writing, too: it has no end when who asks closes it. */
    const int file = open(pipe_of(tx, "ask"), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    mpi_caller = caller = about_of(tx).uid; /* it has no more rights than who began the change */
    note_about("alternating", tx);
    for (char letter; file >= 0 && (letter = wait_for_letter(file)) && is_still(file, pipe_of(tx, "ask"));) {
        struct text said = {0};
        const char *steps = letter == 'a' ? a : b;
        const bool done = serve(file, tx, steps, made, &said);
        made = done ? steps : NULL;
        const char *words =
            starts_with(text_string(&said), "error\t") ? said.at + strlen("error\t") : "it failed";
        write_to(pipe_of(tx, "answer"), done ? "ok\n" : print("%s\n", one_line(words, strcspn(words, "\n"))),
                 ANSWER_MS);
    }
    if (file >= 0 && is_still(file, pipe_of(tx, "ask"))) {
        unlink(pipe_of(tx, "ask"));
        unlink(pipe_of(tx, "answer"));
        rmdir(PLACE);
    }
    _exit(EXIT_DONE);
}
