#include "guard/recover.h"

#include "guard/answer.h"
#include "guard/change.h"
#include "guard/kind/keeping.h"
#include "guard/kind/module.h"
#include "guard/lock.h"
#include "guard/undo.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define UNITS "/etc/systemd/system"
#define UNIT UNITS "/wulf-recover.service"
#define WANTS UNITS "/sysinit.target.wants"
#define WANTED WANTS "/wulf-recover.service"

enum { RETRY_S = 60, LONGEST_RETRY_S = 3600 };

static bool numbers_in(const char *name, uint64_t numbers[2]) {
    struct text text = {0};
    if (read_own(run_place(), name, &text) != DONE || !text.size || text.at[text.size - 1] != '\n') {
        forgive();
        return false;
    }
    struct bytes rest = {text.at, text.size - 1}, word;
    numbers[0] = numbers[1] = 0;
    return next_word(&rest, &word) && bytes_number(word, INT64_MAX / 2, &numbers[0]) &&
           (!next_word(&rest, &word) || bytes_number(word, INT64_MAX / 2, &numbers[1]));
}

int64_t due_at(const char *tx) {
    uint64_t numbers[2];
    const bool stuck = is_same(state_of(tx).word, "stuck");
    return numbers_in(print("%s.%s", stuck ? "retry" : "deadline", tx), numbers) ? (int64_t)numbers[0] : 0;
}

bool is_late(const char *tx) { return now_s() >= due_at(tx); }

void retry_later(const char *tx) {
    uint64_t numbers[2];
    int64_t wait = RETRY_S;
    if (numbers_in(print("retry.%s", tx), numbers) && numbers[1])
        wait = (int64_t)(numbers[1] < LONGEST_RETRY_S ? 2 * numbers[1] : LONGEST_RETRY_S);
    wait = wait < LONGEST_RETRY_S ? wait : LONGEST_RETRY_S;
    if (keep_in_run(print("retry.%s", tx),
                    print("%lld %lld", (long long)(now_s() + wait), (long long)wait)) != DONE)
        forgive(); /* then it is due at once */
}

/* Nobody has come in time, so whoever has the node is gone. */
static void give_up(const char *tx, bool stuck) {
    if (stuck) {
        if (undo(tx, "at a later attempt") != EXIT_DONE)
            return;
    } else {
        const struct about about = about_of(tx);
        if (undo(tx, "not confirmed in time") == EXIT_DONE)
            unlock_owner(about.owner, about.uid);
    }
}

static void recover_one(const char *tx, bool also_stuck) {
    const struct tx_state state = state_of(tx);
    if (is_same(state.word, "stuck")) {
        if (also_stuck || is_late(tx))
            give_up(tx, true);
        return;
    }
    if (is_over(state.word))
        return;
    int code = EXIT_DONE;
    const struct about about = about_of(tx);
    if (about.known && !is_same(about.boot, boot_id()))
        code = undo(tx, "the node was started anew");
    else if (is_late(tx))
        give_up(tx, false);
    else if (is_word_of(state.word, "preparing applying undoing"))
        code = undo(tx, "its guard was ended");
    if (code != EXIT_DONE)
        forgive();
}

void recover(bool also_stuck) {
    const size_t size = answer_size(); /* what is put back here is in the log: it answers no question */
    const struct names open = open_changes(OPEN_ALL);
    for (size_t i = 0; i < open.count; i++)
        recover_one(open.at[i], also_stuck);
    answer_cut(size);
    const struct tx_rows rows = journal();
    for (size_t i = 0; i < rows.count; i++) /* a `begin` that never came to its journal */
        if (is_same(rows.at[i].state.word, "none") &&
            is_there(state_place(), print("tx/%s", rows.at[i].name)))
            discard(rows.at[i].name);
    const struct names gone = names_with(state_place(), ".", "gone.");
    for (size_t i = 0; i < gone.count; i++)
        remove_tree(state_place(), gone.at[i]);
    tidy();
}

static void tidy_files(int place, const char *start) {
    const struct names names = names_with(place, ".", start);
    for (size_t i = 0; i < names.count; i++)
        if (is_over(state_of(names.at[i] + strlen(start)).word))
            remove_own(place, names.at[i]);
}

/* A power cut may have left one of the two alone. */
static void no_recover_at_boot(void) {
    struct stat about;
    if (lstat(UNIT, &about) != 0 && lstat(WANTED, &about) != 0)
        return;
    unlink(WANTED);
    unlink(UNIT);
    rmdir(WANTS);
}

bool tidy(void) {
    tidy_files(run_place(), "deadline.");
    tidy_files(run_place(), "retry.");
    tidy_files(run_place(), "part.");
    tidy_files(state_place(), "open.");
    if (open_changes(OPEN_ALL).count)
        return false;
    const struct names unloaded = names_with(state_place(), ".", UNLOADED);
    for (size_t i = 0; i < unloaded.count; i++) /* somebody has left it so */
        remove_own(state_place(), unloaded.at[i]);
    no_recover_at_boot();
    return true;
}

/* What it starts is not needed to be there: the guard and its journal are on a file system that may come
 * late, or not at all. It waits for those that there are, needs none of them, and does not keep the node from
 * booting. */
static const char *unit_text(void) {
    return "[Unit]\n"
           "Description=Undo changes of wulf that nobody confirmed\n"
           "DefaultDependencies=no\n"
           "Wants=var.mount var-lib.mount var-lib-wulf.mount\n"
           "After=var.mount var-lib.mount var-lib-wulf.mount local-fs.target\n"
           "Before=sysinit.target systemd-sysctl.service systemd-modules-load.service network-pre.target\n\n"
           "[Service]\n"
           "Type=oneshot\n"
           "TimeoutStartSec=300\n"
           "ExecStart=/bin/sh -c 'if [ -x " PROGRAM_PLACE " ]; then exec " PROGRAM_PLACE " recover; fi; "
           "echo \"" PROGRAM_PLACE
           " is not there: what nobody confirmed is undone when wulf next reaches this node\" >&2'\n";
}

enum outcome recover_at_boot(void) {
    struct stat about;
    if (stat(UNITS, &about) != 0 || !S_ISDIR(about.st_mode))
        return DONE; /* no systemd */
    if (lstat(UNIT, &about) == 0 && lstat(WANTED, &about) == 0)
        return DONE;
    struct kept link = {.is = KEPT_LINK, .link = "../wulf-recover.service"};
    if (write_kept(UNIT, unit_text(), 0644) != DONE)
        return FAILED;
    return kept_write(WANTED, &link);
}
