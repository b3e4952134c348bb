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

/* --- pipes --- */

static char *pipe_of(const char *tx, const char *what) { return print(PLACE "/%s.%s", tx, what); }

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

static void end_pipes(const char *tx) {
    struct stat about;
    if (lstat(pipe_of(tx, "ask"), &about) != 0)
        return;
    if (S_ISFIFO(about.st_mode))
        write_to(pipe_of(tx, "ask"), "end\n", 100);
    unlink(pipe_of(tx, "ask"));
    unlink(pipe_of(tx, "answer"));
    rmdir(PLACE);
}

void end_alternation(const char *tx) {
    remove_own(run_place(), print("part.%s", tx));
    end_pipes(tx);
}

/* --- what others set while a step is not made --- */

static void keep_as(const char *tx, const struct plan *plan, const struct step *step,
                    const struct state *state) {
    note("what somebody else has set of it comes back: %s", step->knob);
    if (renew_saved(tx, step->number, state) != DONE || seal(tx, plan) != DONE)
        fail(EXIT_FAILED, "%s: what somebody else has set cannot be kept", step->knob);
}

/* Of a step that nothing else moves. */
static void keep_now(const char *tx, const struct plan *plan, const struct step *step) {
    struct state now, saved = {0};
    if (read_saved(tx, step->number, &saved) != DONE || save_step(step, &now) != DONE)
        fail(EXIT_FAILED, "%s: %s", step->knob, complaint("what is there now cannot be read"));
    if (!state_identical(&now, &saved))
        keep_as(tx, plan, step, &now);
}

/* What somebody else has set of a step is what comes back, whatever is made of the step later on. */
static void keep_theirs(const char *tx, const struct plan *plan, const struct step *step,
                        const struct state *theirs) {
    struct state saved = {0}, now, kept = {0};
    if (read_saved(tx, step->number, &saved) != DONE || save_step(step, &now) != DONE)
        fail(EXIT_FAILED, "%s: %s", step->knob, complaint("what is there now cannot be read"));
    for (size_t i = 0; i < saved.count; i++)
        if (!(saved.at[i].flags & ITEM_VOLATILE) && !state_value(theirs, saved.at[i].key))
            state_add(&kept, saved.at[i].key, saved.at[i].value);
    for (size_t i = 0; i < theirs->count; i++)
        if (!(theirs->at[i].flags & (ITEM_ABSENT | ITEM_VOLATILE)))
            state_add(&kept, theirs->at[i].key, theirs->at[i].value);
    for (size_t i = 0; i < now.count; i++)
        if (now.at[i].flags & ITEM_VOLATILE)
            state_add_flagged(&kept, now.at[i].key, now.at[i].value, ITEM_VOLATILE);
    keep_as(tx, plan, step, &kept);
}

/* How a step is left that is not made: what is otherwise when it is to be made is somebody else's. */
static void leave_at_rest(const char *tx, const struct step *step) {
    struct state now;
    if (save_step(step, &now) != DONE || write_state(tx, "rest", step->number, &now, false) != DONE)
        remove_own(state_place(), print("tx/%s/rest.%zu", tx, step->number));
    forgive();
}

static void keep_what_came(const char *tx, const struct plan *plan, const struct step *step) {
    struct state now, rest = {0}, theirs = {0};
    const bool known = read_rest(tx, step->number, &rest) && save_step(step, &now) == DONE;
    forgive();
    if (!known || state_same(&now, &rest))
        return;
    for (size_t i = 0; i < now.count; i++) {
        const char *was = state_value(&rest, now.at[i].key);
        if (!was || !is_same(was, now.at[i].value))
            state_add_flagged(&theirs, now.at[i].key, now.at[i].value, now.at[i].flags);
    }
    for (size_t i = 0; i < rest.count; i++)
        if (!state_value(&now, rest.at[i].key))
            state_add_flagged(&theirs, rest.at[i].key, "", ITEM_ABSENT);
    keep_theirs(tx, plan, step, &theirs);
}

/* --- parts --- */

/* One part after the other; `made` are the steps of that before, or NULL where that is not known. */
struct turn {
    const char *tx, *steps, *made;
    const struct plan *plan;
    struct back *backs; /* of those that are taken back */
    bool *stays;        /* of those that are and stay made: it is as it was made */
    bool *is_of_file;   /* of those: its file is, too, which others write to */
    bool moves_others;  /* one that comes or goes may move what others have set */
};

static bool is_wanted(const struct turn *turn, size_t i) { return has(turn->steps, i + 1); }
static bool is_made_already(const struct turn *turn, size_t i) {
    return turn->made && has(turn->made, i + 1);
}
static bool goes(const struct turn *turn, size_t i) {
    return !is_wanted(turn, i) && (!turn->made || has(turn->made, i + 1));
}

/* An item that tells nothing of whether this step is made: it moves by itself, or is another step's. */
static bool tells_nothing(const struct back *back, const struct item *item) {
    const struct kind *kind = back->step->known->kind;
    return (item->flags & ITEM_VOLATILE) || back_is_of_another(back, item->key) ||
           (kind->moves && kind->moves(&back->before, &back->after, item->key));
}

/* Whether what a step has set is not so any more; `unseen` where that cannot be seen. */
static bool is_otherwise(const struct turn *turn, size_t i, bool unseen) {
    const struct step *step = &turn->plan->steps[i];
    struct back back;
    struct state now;
    const bool seen = step->known && back_of_step(turn->tx, turn->plan, step, &back) == DONE &&
                      back.after_known && save_step(step, &now) == DONE;
    forgive();
    if (!seen)
        return unseen;
    for (size_t j = 0; j < back.after.count; j++) {
        const struct item *made = &back.after.at[j];
        const char *before = state_value(&back.before, made->key), *is = state_value(&now, made->key);
        if (!tells_nothing(&back, made) && !(before && is_same(before, made->value)) &&
            !(is && is_same(is, made->value)))
            return true;
    }
    return false;
}

static bool is_of_same_file(const char *tx, const struct step *step) {
    struct state now, made = {0};
    const bool is = is_same(step->kind_name, "mpi_parameter") && read_after(tx, step->number, &made) &&
                    save_step(step, &now) == DONE && state_identical(&now, &made);
    forgive();
    return is;
}

/* Where it is not known whether a step is made: what it is neither before nor after it. */
static void keep_what_is_neither(const struct turn *turn, const struct step *step) {
    struct back back;
    struct state now;
    const bool known = step->known && back_of_step(turn->tx, turn->plan, step, &back) == DONE &&
                       back.after_known && save_step(step, &now) == DONE;
    forgive();
    for (size_t i = 0; known && i < now.count; i++) {
        const struct item *is = &now.at[i];
        const char *was = state_value(&back.before, is->key), *made = state_value(&back.after, is->key);
        if (!tells_nothing(&back, is) && !(was && is_same(was, is->value)) &&
            !(made && is_same(made, is->value)))
            state_add(&back.left, is->key, is->value);
    }
    if (known && back.left.count)
        keep_theirs(turn->tx, turn->plan, step, &back.left);
}

/* What has to come back of a step, before anything is moved. */
static void look_back(const struct turn *turn, size_t i) {
    const struct step *step = &turn->plan->steps[i];
    struct back *back = &turn->backs[i];
    if (back_of_step(turn->tx, turn->plan, step, back) != DONE || !step->known)
        fail(EXIT_FAILED, "%s: what was before it is damaged in the journal", step->knob);
    back_look(back);
}

static void look_at_all(struct turn *turn) {
    for (size_t i = 0; i < turn->plan->count; i++) {
        const bool is = is_made_already(turn, i), wanted = is_wanted(turn, i),
                   apart = is_apart(turn->plan, i);
        turn->moves_others = turn->moves_others || ((!turn->made || is != wanted) && !apart);
        turn->stays[i] = is && wanted && !apart && !is_otherwise(turn, i, false);
        turn->is_of_file[i] = turn->stays[i] && is_of_same_file(turn->tx, &turn->plan->steps[i]);
        if (goes(turn, i))
            look_back(turn, i);
        else if (turn->made && !is && !apart)
            keep_what_came(turn->tx, turn->plan, &turn->plan->steps[i]);
        else if (!turn->made)
            keep_what_is_neither(turn, &turn->plan->steps[i]);
    }
}

/* From here on which part is made is not known until all of it is. */
static void begin_to_move(const struct turn *turn) { remove_own(run_place(), print("part.%s", turn->tx)); }

/* Whoever has it now: it is in our hands while the change is open. */
static void take_back(const struct turn *turn, const struct step *step) {
    struct back *back = &turn->backs[step->number - 1];
    begin_to_move(turn);
    if (put_back(back) != DONE)
        fail(EXIT_FAILED, "%s: %s", step->knob, one_line(complaint("it is not as before"), SHOWN));
    back_say_left(back);
    if (back->left.count && !is_apart(turn->plan, step->number - 1))
        keep_theirs(turn->tx, turn->plan, step, &back->left);
}

static void make_step(const struct turn *turn, size_t i) {
    const struct step *step = &turn->plan->steps[i];
    begin_to_move(turn);
    if (turn->made && !is_made_already(turn, i) && is_apart(turn->plan, i))
        keep_now(turn->tx, turn->plan, step);
    if (put_step(turn->tx, turn->plan, step) != DONE)
        fail(EXIT_FAILED, "%s=%s: %s", step->knob, one_line(step->value, 60),
             one_line(complaint("it was refused"), SHOWN));
    save_after(turn->tx, step); /* a file is another one now, and a rule has another handle */
}

/* Make these steps, and put the others back. One that stays made is made again where others have moved it:
 * parameters of one group, a profile that sets more; what it was not before that is somebody else's. */
static void make_part(struct turn *turn) {
    const struct plan *plan = turn->plan;
    const struct step **order = undo_order(plan);
    look_at_all(turn);
    for (size_t i = 0; i < plan->count; i++)
        if (goes(turn, order[i]->number - 1))
            take_back(turn, order[i]);
    for (size_t i = 0; i < plan->count; i++) {
        const bool moved = turn->moves_others && turn->stays[i] && is_otherwise(turn, i, true);
        if (is_wanted(turn, i) && (!is_made_already(turn, i) || moved))
            make_step(turn, i);
    }
    for (size_t i = 0; turn->moves_others && i < plan->count; i++)
        if (turn->is_of_file[i])
            save_after(turn->tx, &plan->steps[i]);
        else if (!is_wanted(turn, i) && !is_apart(plan, i))
            leave_at_rest(turn->tx, &plan->steps[i]);
}

static void change_part(const char *tx, const struct plan *plan, const char *steps) {
    struct turn turn = {.tx = tx, .plan = plan, .steps = steps};
    struct text made = {0};
    const char *name = print("part.%s", tx);
    if (read_own(run_place(), name, &made) == DONE && made.size > 1)
        turn.made = keep(made.at, made.size - 1);
    forgive();
    turn.backs = take((plan->count + 1) * sizeof *turn.backs);
    turn.stays = take(plan->count + 1);
    turn.is_of_file = take(plan->count + 1);
    make_part(&turn);
    if (!turn.made || !is_same(turn.made, steps))
        made_are(tx, steps);
}

void made_are(const char *tx, const char *steps) {
    if (keep_in_run(print("part.%s", tx), steps) != DONE)
        forgive();
}

void part(const char *tx, const char *steps) {
    const struct plan plan = open_plan(tx);
    require_steps(tx, steps, &plan);
    end_pipes(tx);
    change_part(tx, &plan, steps);
}

void alternate(const char *tx, const char *a, const char *b) {
    const struct plan plan = open_plan(tx);
    require_steps(tx, a, &plan);
    require_steps(tx, b, &plan);
    end_pipes(tx);
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

/* Whether a pipe is still the one of its name: whoever has another part made has taken it away, or made a new
 * one. */
static bool is_still(int file, const char *path) {
    struct stat about, there;
    return fstat(file, &about) == 0 && lstat(path, &there) == 0 && about.st_ino == there.st_ino &&
           about.st_dev == there.st_dev;
}

/* In a process of its own, whose end says how it was. */
static _Noreturn void answer_request(int asked, const char *tx, const char *steps) {
    exclusively(false);
    if (!is_still(asked, pipe_of(tx, "ask")))
        fail(EXIT_LATE, "another part of %s is made", tx);
    const struct plan plan = open_plan(tx);
    change_part(tx, &plan, steps);
    finish(EXIT_DONE);
}

/* What it says goes to `said`; whether it is done. */
static bool serve(int asked, const char *tx, const char *steps, struct text *said) {
    int ends[2], status = 0;
    char block[1024];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    const pid_t child = fork();
    if (child == 0) {
        if (dup2(ends[1], STDOUT_FILENO) != STDOUT_FILENO)
            _exit(EXIT_ERROR);
        answer_request(asked, tx, steps);
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
    /* Open for writing, too: it has no end when who asks closes it. */
    const int file = open(pipe_of(tx, "ask"), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    mpi_caller = caller = about_of(tx).uid; /* it has no more rights than who began the change */
    note_about("alternating", tx);
    for (char letter; file >= 0 && (letter = wait_for_letter(file)) && is_still(file, pipe_of(tx, "ask"));) {
        struct text said = {0};
        const char *steps = letter == 'a' ? a : b;
        const bool done = serve(file, tx, steps, &said);
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
