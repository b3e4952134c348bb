/* The guard: makes changes on this node and undoes them unless they are confirmed in time.
 *
 *   guard lock OWNER LEASE_S             take (or renew) the node for one controller
 *   guard unlock OWNER
 *   guard begin TX OWNER DEADLINE_S      plan on stdin; journals the old state, changes nothing
 *   guard apply TX                       makes the changes and prints what the kernel or driver made of them
 *   guard swap OLD TX OWNER DEADLINE_S   undo OLD (- for none), begin TX (plan on stdin) and apply it, in one
 * go guard part TX STEPS                  makes these steps of it, and puts what the others have changed back
 *   guard alternate TX A B               lets the probe have either of two parts of it made, again and again
 *   guard extend TX DEADLINE_S           still there: so many seconds from now
 *   guard confirm TX                     keeps them; over a new connection
 *   guard undo TX [WHY]                  puts back what it has changed
 *   guard rollback TX OWNER DEADLINE_S original|ID
 *                                        begins a change back to the state before that one
 *   guard recover                        ends what was left open; also runs before any of the above, and at
 * boot guard status                         what is set, by whom, since when, and what differs; changes
 * nothing guard leaves TX                      what a change that is stuck has left; changes nothing guard
 * abandon TX                     leaves it so for good guard where                          where the files
 * of a plan (stdin) are, and who else may have them guard explain                        the commands that a
 * plan (stdin) would run; runs none, needs no root guard version
 *
 * A plan has one step per line, with tabs between: KNOB KIND INTERFACE TARGET VALUE. Called by way of sudo
 * (SUDO_UID is not 0) it does what /etc/wulf/grant and the table of knobs grant.
 *
 * Exit codes: 0 done; 1 an error, nothing changed; 10 somebody else has the node; 11 a step failed and all is
 * put back; 12 too late: it was undone before; 13 not everything could be put back (`status` says what). */
#include "guard/alternation.h"
#include "guard/answer.h"
#include "guard/change.h"
#include "guard/confine.h"
#include "guard/file.h"
#include "guard/history.h"
#include "guard/kind.h"
#include "guard/kind/mpi.h"
#include "guard/kind/pm_qos.h"
#include "guard/lock.h"
#include "guard/place.h"
#include "guard/recover.h"
#include "guard/scope.h"
#include "guard/settle.h"
#include "guard/sha256.h"
#include "guard/tool.h"
#include "guard/undo.h"
#include "guard/watch.h"
#include "guard/words.h"

#include <string.h>

static void lock(const char *owner, int64_t lease_s) {
    const struct owner has = owner_now();
    int64_t since = now_s();
    if (has.is && is_same(has.name, owner) && has.uid == caller) {
        since = has.since;
    } else if (has.is && now_s() < has.until) {
        fail(EXIT_BUSY, "%s has this node since %lld s, for %lld s more at most", has.name,
             (long long)(now_s() - has.since), (long long)(has.until - now_s()));
    } else if (has.is) {
        note("the lease of %s is over: %s takes the node", has.name, owner);
        const struct names open = open_changes(OPEN_UNFINISHED);
        for (size_t i = 0; i < open.count; i++)
            if (undo(open.at[i], "its owner is gone") != EXIT_DONE)
                forgive();
    }
    if (set_owner(owner, caller, since, now_s() + lease_s) != DONE)
        fail(EXIT_ERROR, "cannot write to %s: is it full?", RUN_PLACE);
}

static void unlock(const char *owner) {
    const struct owner has = owner_now();
    if (!caller || has.uid == caller)
        unlock_owner(owner, has.uid);
    look_again(); /* who saw nothing open and was stopped on its way out */
}

static void explain_plan(const struct plan *plan) {
    explaining = true;
    for (size_t i = 0; i < plan->count; i++) {
        const struct step *step = &plan->steps[i];
        const size_t size = answer_size();
        forgive();
        if (!step->known || step->known->kind->put(step) != DONE)
            fail(EXIT_ERROR, "%s=%s: %s", step->knob, step->value,
                 complaint("this guard knows no such kind of access"));
        const char *said = keep_text(answer_from(size));
        answer_cut(size);
        struct bytes rest = {said, strlen(said)}, line;
        while (next_line(&rest, &line))
            say_line("%s\t%s", step->knob, keep(line.at, line.size));
    }
}

enum how { ITS_OWN = 1, LOOKS = 2, HAS_PLAN = 4, RECOVERS = 8 };

static const struct verb {
    const char *name, *forms;
    unsigned how;
} VERBS[] = {
    {"lock", "owner lease", RECOVERS},
    {"unlock", "owner", RECOVERS},
    {"begin", "change owner deadline", RECOVERS | HAS_PLAN},
    {"apply", "change", RECOVERS},
    {"swap", "change change owner deadline", RECOVERS | HAS_PLAN},
    {"part", "change steps", RECOVERS},
    {"alternate", "change steps steps", RECOVERS},
    {"extend", "change deadline", RECOVERS},
    {"confirm", "change", RECOVERS},
    {"undo", "change why", 0},
    {"rollback", "change owner deadline change", RECOVERS},
    {"abandon", "change", RECOVERS},
    {"where", "", RECOVERS | HAS_PLAN},
    {"recover", "", ITS_OWN},
    {"overdue", "why", ITS_OWN},
    {"status", "", LOOKS},
    {"leaves", "change", LOOKS},
};

static int perform(const char *verb, const char *const words[], struct plan *plan) {
    if (is_same(verb, "lock"))
        lock(words[0], number_of(words[1]));
    else if (is_same(verb, "unlock"))
        unlock(words[0]);
    else if (is_same(verb, "begin"))
        begin(words[0], words[1], number_of(words[2]), plan);
    else if (is_same(verb, "apply"))
        apply(words[0]);
    else if (is_same(verb, "swap"))
        swap(words[0], words[1], words[2], number_of(words[3]), plan);
    else if (is_same(verb, "part"))
        part(words[0], words[1]);
    else if (is_same(verb, "alternate"))
        alternate(words[0], words[1], words[2]);
    else if (is_same(verb, "extend"))
        extend(words[0], number_of(words[1]));
    else if (is_same(verb, "confirm"))
        confirm(words[0]);
    else if (is_same(verb, "rollback"))
        rollback(words[0], words[1], number_of(words[2]), words[3]);
    else if (is_same(verb, "abandon"))
        abandon(words[0]);
    else if (is_same(verb, "where"))
        where(plan);
    else if (is_same(verb, "recover"))
        recover(true);
    else if (is_same(verb, "undo")) {
        require_own(words[0]);
        const int code = undo(words[0], words[1] ? words[1] : "asked to");
        recover(false);
        return code;
    }
    return EXIT_DONE;
}

static _Noreturn void run_verb(const struct verb *verb, const char *const words[]) {
    struct plan plan = {0};
    if (caller && (verb->how & ITS_OWN))
        fail(EXIT_ERROR, "not through sudo: there is no verb %s", verb->name);
    if (caller && scope_grants_user(caller) != GRANTED)
        fail(EXIT_ERROR, "%s", complaint("not through sudo"));
    if (caller && read_confined(verb->forms, words, caller, verb->how & HAS_PLAN, &plan) != DONE)
        fail(EXIT_ERROR, "%s", complaint("not through sudo: what is asked cannot be read"));
    if (check_words(verb->forms, words, caller) != GRANTED)
        fail(EXIT_ERROR, "%s", complaint("its words are not those of the verb"));
    if (!caller && (verb->how & HAS_PLAN) && read_plan_from_input(0, &plan) != DONE)
        fail(EXIT_ERROR, "%s", complaint("there is no plan"));
    for (size_t i = 0; i < plan.count; i++) {
        struct granted granted;
        if (caller && grant(&plan.steps[i], caller, &granted) != GRANTED)
            fail(EXIT_ERROR, "%s", complaint("not through sudo"));
    }
    if (caller)
        one_of(caller); /* who looks again and again must leave room for who puts something back */
    if (verb->how & LOOKS) {
        note_nothing();
        only_looking = true;
        looking();
        if (is_same(verb->name, "status"))
            status();
        else
            leaves(words[0]);
        finish(EXIT_DONE);
    }
    if (is_same(verb->name, "overdue")) {
        overdue();
        finish(EXIT_DONE);
    }
    exclusively(is_word_of(verb->name, "undo recover"));
    note_rotate();
    if (verb->how & RECOVERS)
        recover(false);
    note_about(verb->name, words[0] && is_word_of("change", verb->forms) ? words[0] : "-");
    finish(perform(verb->name, words, &plan));
}

/* What is kept is set again, at boot or when a service has loaded its own rules: no change, and not under the
 * lock, which a guard has that starts such a service. */
static _Noreturn void set_kept(const char *const words[]) {
    struct plan plan;
    struct granted granted;
    const char *line = print("kept\t%s\t%s\t%s\t%s\n", words[0], words[1], words[2], words[3]);
    pm_qos_in_service = true;
    if (plan_read((struct bytes){line, strlen(line)}, &plan) != DONE || *plan.steps[0].value == '@' ||
        grant(&plan.steps[0], caller, &granted) != GRANTED ||
        granted.step->known->kind->put(granted.step) != DONE)
        fail(EXIT_ERROR, "%s", complaint("it was refused"));
    finish(EXIT_DONE);
}

static _Noreturn void run_own(const char *verb, const char *const words[]) {
    if (is_role(verb))
        watch(verb);
    if (is_same(verb, "alternating") && words[0] && words[1] && words[2] &&
        is_change((struct bytes){words[0], strlen(words[0])}))
        alternating(words[0], words[1], words[2]);
    if (is_same(verb, "set") && words[0] && words[1] && words[2] && words[3])
        set_kept(words);
    if (is_same(verb, "hold") && words[0] && words[1])
        pm_qos_hold(words[0], words[1]);
    fail(EXIT_ERROR, "there is no verb %s", one_line(verb, 80));
}

/* Which program it is: the SHA-256 of all of it. */
static void say_version(void) {
    struct text text = {0};
    char hex[65] = "-";
    if (read_any("/proc/self/exe", &text) == DONE)
        sha256_hex(text.at, text.size, hex);
    say_line("%s wulf-guard %s", hex, WULF_VERSION);
}

static _Noreturn void run_unprivileged(const char *verb) {
    struct plan plan;
    if (is_same(verb, "version"))
        say_version();
    else if (give_up_rights(caller) != DONE || read_plan_from_input(0, &plan) != DONE)
        fail(EXIT_ERROR, "%s", complaint("there is no plan"));
    else
        explain_plan(&plan);
    finish(EXIT_DONE);
}

int main(int count, char *arguments[]) {
    const char *verb = count > 1 ? arguments[1] : "";
    const bool unprivileged = is_word_of(verb, "version explain") && *verb;
    caller = settle(!unprivileged);
    if (unprivileged)
        run_unprivileged(verb);
    mpi_caller = caller;
    const char *words[8] = {NULL};
    if (count - 2 >= (int)COUNT(words))
        fail(EXIT_ERROR, "%smore words than any verb has", caller ? "not through sudo: " : "");
    for (int i = 2; i < count; i++)
        words[i - 2] = arguments[i];
    const bool looks = is_same(verb, "status") || is_same(verb, "leaves");
    if (open_places(!looks) != DONE)
        fail(EXIT_ERROR, "%s", complaint("its places cannot be opened"));
    for (size_t i = 0; i < COUNT(VERBS); i++)
        if (is_same(verb, VERBS[i].name))
            run_verb(&VERBS[i], words);
    if (!caller)
        run_own(verb, words);
    fail(EXIT_ERROR, "not through sudo: there is no verb %s", one_line(verb, 80));
}
