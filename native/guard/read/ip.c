#include "guard/read/ip.h"

static bool is_shown_only(struct bytes word) {
    static const char *const shown[] = {"linkdown", "dead",       "offload", "offload_failed",
                                        "trap",     "rt_offload", "rt_trap"};
    for (size_t i = 0; i < COUNT(shown); i++)
        if (bytes_are(word, shown[i]))
            return true;
    return false;
}

static bool is_of_another_form(struct bytes word) {
    static const char *const forms[] = {"nexthop",  "nhid",  "blackhole", "unreachable",
                                        "prohibit", "throw", "encap"};
    for (size_t i = 0; i < COUNT(forms); i++)
        if (bytes_are(word, forms[i]))
            return true;
    return false;
}

static bool is_address(struct bytes word) {
    bool has_mark = false;
    for (size_t i = 0; i < word.size; i++) {
        const char byte = word.at[i];
        const bool mark = byte == '.' || byte == ':' || byte == '/';
        if (!mark && !(byte >= '0' && byte <= '9') && !(byte >= 'a' && byte <= 'f'))
            return false;
        has_mark = has_mark || mark;
    }
    return has_mark;
}

bool are_routes(struct bytes text) {
    static const char *const kinds[] = {"default",   "unicast", "local", "broadcast",
                                        "multicast", "anycast", "nat",   "xresolve"};
    for (struct bytes line, word; next_line(&text, &line);) {
        bool known = next_word(&line, &word) && (is_address(word) || is_of_another_form(word));
        for (size_t i = 0; i < COUNT(kinds); i++)
            known = known || bytes_are(word, kinds[i]);
        if (!known)
            return false;
    }
    return true;
}

static bool next_value(struct bytes *line, struct bytes *word) {
    return next_word(line, word) && (!bytes_are(*word, "lock") || next_word(line, word));
}

enum outcome read_route(struct bytes line, const char *property, struct route_line *route) {
    *route = (struct route_line){0};
    if (!next_word(&line, &route->destination))
        return FAILED;
    route->is_other = is_of_another_form(route->destination);
    for (struct bytes word; next_word(&line, &word);) {
        if (is_of_another_form(word))
            route->is_other = true;
        if (bytes_are(word, "metric") && !next_word(&line, &route->metric))
            return FAILED;
        if (property && bytes_are(word, property) && !next_value(&line, &route->property))
            return FAILED;
    }
    return DONE;
}

void each_route_word(struct bytes line, const char *property, void (*word)(void *of, struct bytes word),
                     void *of) {
    for (struct bytes one; next_word(&line, &one);) {
        if (is_shown_only(one))
            continue;
        if (property && bytes_are(one, property)) {
            if (!next_value(&line, &one))
                return;
            continue;
        }
        word(of, one);
        if (bytes_are(one, "rto_min") && next_value(&line, &one))
            word(of, one);
    }
}
