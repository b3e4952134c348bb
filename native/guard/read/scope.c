#include "guard/read/scope.h"

static bool are_users(struct bytes words) {
    uint64_t number;
    for (struct bytes word; next_word(&words, &word);)
        if (!bytes_number(word, UINT32_MAX - 1, &number))
            return false;
    return true;
}

static bool are_interfaces(struct bytes words) {
    for (struct bytes word; next_word(&words, &word);)
        if (!is_interface(word))
            return false;
    return true;
}

enum outcome read_scope(struct bytes text, struct scope *scope) {
    *scope = (struct scope){0};
    for (struct bytes line, key; next_line(&text, &line);) {
        if (!line.size || line.at[0] == '#')
            continue;
        if (!cut(&line, '\t', &key))
            return FAILED;
        struct bytes *where = bytes_are(key, "users")        ? &scope->users
                              : bytes_are(key, "interfaces") ? &scope->interfaces
                                                             : NULL;
        if (!where || where->at || !(where == &scope->users ? are_users(line) : are_interfaces(line)))
            return FAILED;
        *where = line;
    }
    return scope->users.size && scope->interfaces.at ? GRANTED : FAILED;
}

bool scope_has(struct bytes words, const char *word) {
    for (struct bytes one; next_word(&words, &one);)
        if (bytes_are(one, word))
            return true;
    return false;
}
