/* CPUs of the interface's interrupts. They are known by their names: a driver that makes its queues anew gets
 * other numbers. The value is a list of CPUs for each interrupt, in order; the last one serves the rest. */
#include "guard/kind/files.h"

#include "guard/tool.h"

#include <string.h>

struct interrupt {
    uint64_t number;
    const char *name;
};

/* NAME, NAME-rx-0, mlx5-NAME, i40e-NAME@0000:01:00.0 */
static bool is_of(struct bytes name, const char *interface) {
    for (size_t at = 0; at < name.size; at++) {
        struct bytes rest = bytes_from(name, at);
        if ((at && name.at[at - 1] != '-' && name.at[at - 1] != '@') || !bytes_begin(rest, interface))
            continue;
        rest = bytes_from(rest, strlen(interface));
        if (!rest.size || strchr("-@:", rest.at[0]))
            return true;
    }
    return false;
}

static enum outcome interrupts(const char *interface, struct interrupt found[], size_t most, size_t *count) {
    struct text text = {0};
    if (read_any("/proc/interrupts", &text) != DONE)
        return FAILED;
    struct bytes rest = {text_string(&text), text.size}, line;
    *count = 0;
    while (next_line(&rest, &line) && *count < most) {
        struct bytes first, word, last = {0};
        if (!next_word(&line, &first) || !bytes_end(first, ":"))
            continue;
        first.size--;
        while (next_word(&line, &word))
            last = word;
        uint64_t number;
        if (bytes_number(first, UINT32_MAX, &number) && last.size && is_of(last, interface))
            found[(*count)++] = (struct interrupt){number, keep(last.at, last.size)};
    }
    return *count ? DONE : complain("%s has no interrupts of its own", interface);
}

enum { MOST_INTERRUPTS = 4096 };

static const char *path_of(uint64_t number) {
    return print("/proc/irq/%llu/smp_affinity_list", (unsigned long long)number);
}

static struct interrupt *room(void) { return take(MOST_INTERRUPTS * sizeof(struct interrupt)); }

static enum outcome save(const struct step *step, struct state *state) {
    struct interrupt *found = room();
    size_t count;
    if (interrupts(step->interface, found, MOST_INTERRUPTS, &count) != DONE)
        return FAILED;
    for (size_t i = 0; i < count; i++) {
        char *cpus;
        if (read_value(path_of(found[i].number), &cpus) != DONE)
            return FAILED;
        state_add(state, found[i].name, cpus);
    }
    return DONE;
}

static enum outcome set(uint64_t number, const char *cpus) {
    return set_value(path_of(number), cpus) == DONE
               ? DONE
               : complain("interrupt %llu does not take the CPUs %s", (unsigned long long)number, cpus);
}

static enum outcome put(const struct step *step) {
    const struct names cpus = words_of(step->value);
    struct interrupt *found = room();
    size_t count;
    if (!cpus.count || interrupts(step->interface, found, MOST_INTERRUPTS, &count) != DONE)
        return FAILED;
    for (size_t i = 0; i < count; i++)
        if (set(found[i].number, cpus.at[i < cpus.count ? i : cpus.count - 1]) != DONE)
            return FAILED;
    return DONE;
}

static enum outcome restore(const struct step *step, const struct state *items, const struct state *before,
                            const struct state *after) {
    (void)before;
    (void)after;
    struct interrupt *found = room();
    size_t count;
    if (interrupts(step->interface, found, MOST_INTERRUPTS, &count) != DONE)
        return FAILED;
    enum outcome outcome = DONE;
    for (size_t i = 0; i < items->count; i++)
        for (size_t j = 0; j < count; j++)
            if (is_same(found[j].name, items->at[i].key) && set(found[j].number, items->at[i].value) != DONE)
                outcome = FAILED;
    return outcome;
}

static enum outcome get(const struct step *step, struct text *value) {
    struct state state = {0};
    if (save(step, &state) != DONE)
        return FAILED;
    for (size_t i = 0; i < state.count; i++)
        text_print(value, "%s%s", i ? " " : "", state.at[i].value);
    return DONE;
}

const struct kind kind_irq_affinity = {.save = save, .put = put, .restore = restore, .get = get};
