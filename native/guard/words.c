#include "guard/words.h"

#include "guard/scope.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

enum {
    MOST_NUMBER = 1000000000,
    MOST_OTHERS = 65536,
    MOST_ROOTS = 16 << 20,
    INPUT_MS = 30000,
    OTHERS_INPUT_MS = 5000
};

static struct bytes bytes_of(const char *text) { return (struct bytes){text, strlen(text)}; }

static bool are_steps(struct bytes rest) {
    struct bytes one;
    uint64_t number;
    for (bool more = true; more;) {
        more = cut(&rest, ',', &one);
        if (!bytes_number(more ? one : rest, 65535, &number))
            return false;
    }
    return true;
}

static bool has_form(struct bytes form, const char *word) {
    const struct bytes bytes = bytes_of(word);
    uint64_t number;
    if (bytes_are(form, "change"))
        return is_change(bytes);
    if (bytes_are(form, "owner"))
        return bytes.size <= 200 && bytes_printable(bytes) && bytes_only(bytes, "@._:+-");
    if (bytes_are(form, "number") || bytes_are(form, "lease") || bytes_are(form, "deadline"))
        return bytes_number(bytes, MOST_NUMBER, &number);
    if (bytes_are(form, "steps"))
        return are_steps(bytes);
    return bytes_are(form, "why") && bytes.size <= 1000;
}

static bool is_too_long(struct bytes form, const char *word) {
    return (bytes_are(form, "lease") && number_of(word) > LONGEST_LEASE_S) ||
           (bytes_are(form, "deadline") && number_of(word) > LONGEST_DEADLINE_S);
}

enum outcome check_words(const char *forms, const char *const words[], uid_t caller) {
    const char *way = caller ? "not through sudo: " : "";
    struct bytes rest = bytes_of(forms), form;
    size_t i = 0;
    for (; next_word(&rest, &form); i++) {
        if (!words[i] && bytes_are(form, "why"))
            return GRANTED; /* it may be left out */
        const char *word = words[i] ? words[i] : "";
        if (bytes_are(form, "change") && !has_form(form, word))
            return complain("%s'%s' is not the name of a change", way, one_line(word, 80));
        if (!has_form(form, word))
            return complain("%s'%s' is no %s", way, one_line(word, 80), keep(form.at, form.size));
        if (caller && is_too_long(form, word))
            return complain("%s%s s is too long", way, word);
    }
    return words[i] ? complain("%smore words than the verb has", way) : GRANTED;
}

int64_t number_of(const char *word) {
    uint64_t number;
    return bytes_number(bytes_of(word), MOST_NUMBER, &number) ? (int64_t)number : 0;
}

enum outcome read_plan_from_input(uid_t caller, struct plan *plan) {
    static char block[65536];
    struct text text = {0};
    const int64_t until = now_ms() + (caller ? OTHERS_INPUT_MS : INPUT_MS);
    const size_t most = caller ? MOST_OTHERS : MOST_ROOTS;
    for (;;) {
        struct pollfd one = {STDIN_FILENO, POLLIN, 0};
        const int64_t left = until - now_ms();
        const int ready = left > 0 ? poll(&one, 1, (int)left) : 0;
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return complain("the plan does not come to its end");
        const ssize_t got = read(STDIN_FILENO, block, sizeof block);
        if (got == 0)
            break;
        if (got < 0 || text.size + (size_t)got > most)
            return complain("%s", got < 0 ? "the plan cannot be read" : "the plan is too long");
        text_add(&text, block, (size_t)got);
    }
    if (plan_read((struct bytes){text_string(&text), text.size}, plan) != DONE)
        return FAILED;
    for (size_t i = 0; i < plan->count; i++) /* a saved state: `rollback` alone makes such a step */
        if (*plan->steps[i].value == '@')
            return complain("%s: a value does not begin with @", plan->steps[i].knob);
    return DONE;
}
