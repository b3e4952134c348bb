#include "guard/read/plan.h"

/* A field of blanks alone has no word in it. */
static bool is_field(struct bytes bytes) { return bytes_printable(bytes) && bytes_trimmed(bytes).size > 0; }

enum outcome read_plan_line(struct bytes text, struct plan_line *line) {
    struct bytes *const fields[] = {&line->knob, &line->kind, &line->interface, &line->target};
    for (size_t i = 0; i < COUNT(fields); i++)
        if (!cut(&text, '\t', fields[i]))
            return FAILED;
    line->value = text;
    const bool sound = is_field(line->knob) && bytes_only(line->kind, "_") && is_field(line->target) &&
                       is_field(line->value) &&
                       (bytes_are(line->interface, "-") || is_interface(line->interface));
    return sound ? GRANTED : FAILED;
}

static bool is_set_before(const struct plan_line *lines, size_t count) {
    const struct plan_line *last = &lines[count];
    for (size_t i = 0; i < count; i++)
        if (bytes_same(lines[i].kind, last->kind) && bytes_same(lines[i].interface, last->interface) &&
            bytes_same(lines[i].target, last->target))
            return true;
    return false;
}

enum outcome read_plan(struct bytes text, struct plan_line lines[PLAN_LINES], size_t *count) {
    *count = 0;
    struct bytes line;
    while (cut(&text, '\n', &line)) {
        if (*count == PLAN_LINES || read_plan_line(line, &lines[*count]) != GRANTED ||
            is_set_before(lines, *count))
            return FAILED;
        ++*count;
    }
    return *count && !text.size ? GRANTED : FAILED;
}
