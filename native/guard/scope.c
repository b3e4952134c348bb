#include "guard/scope.h"

#include "guard/file.h"
#include "guard/read/scope.h"

#include <unistd.h>

static enum outcome scope_now(struct scope *scope) {
    static struct text text;
    static enum outcome outcome;
    const int place = text.at ? -1 : open_directory("/etc/wulf", false);
    if (!text.at && place >= 0 && read_own(place, "grant", &text) == DONE)
        outcome = GRANTED;
    if (place >= 0)
        close(place);
    if (outcome != GRANTED || read_scope((struct bytes){text_string(&text), text.size}, scope) != GRANTED)
        return complain("not through sudo: " SCOPE_PLACE
                        " is missing or damaged ('wulf settings sudoers --install' makes it)");
    return GRANTED;
}

enum outcome scope_grants_user(uid_t uid) {
    struct scope scope;
    if (scope_now(&scope) != GRANTED)
        return FAILED;
    return scope_has(scope.users, print("%u", (unsigned)uid))
               ? GRANTED
               : complain("not through sudo: user %u is not one of those in " SCOPE_PLACE, (unsigned)uid);
}

enum outcome scope_grants_interface(const char *interface) {
    struct scope scope;
    if (scope_now(&scope) != GRANTED)
        return FAILED;
    return scope_has(scope.interfaces, interface) ? GRANTED : FAILED;
}
