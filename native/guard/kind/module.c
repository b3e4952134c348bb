/* A parameter that the interface's driver takes only when it is loaded. Loading it anew takes the link down,
 * and addresses and routes with it: they are put back. `-` stands for "not given". */
#include "guard/kind/module.h"

#include "guard/kind/files.h"

#include "guard/read/ip.h"
#include "guard/tool.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { WAIT_STEPS = 100, STEP_MS = 100, MOST_WORDS = 64 };

enum outcome module_of(const char *interface, const char **driver) {
    char target[1024];
    const ssize_t size =
        readlink(print("/sys/class/net/%s/device/driver/module", interface), target, sizeof target - 1);
    if (size <= 0)
        return complain("%s has no driver that is a module", interface);
    target[size] = 0;
    *driver = keep_text(strrchr(target, '/') ? strrchr(target, '/') + 1 : target);
    return bytes_only((struct bytes){*driver, strlen(*driver)}, "_-")
               ? DONE
               : complain("%s: a driver without a name", interface);
}

/* "options DRIVER A=1 B=2": the value of a parameter. */
static const char *option_in(struct bytes line, const char *driver, const char *parameter) {
    struct bytes word, name;
    const char *found = NULL;
    if (!next_word(&line, &word) || !bytes_are(word, "options") || !next_word(&line, &word) ||
        !bytes_are(word, driver))
        return NULL;
    while (next_word(&line, &word))
        if (cut(&word, '=', &name) && bytes_are(name, parameter))
            found = keep(word.at, word.size);
    return found;
}

static const char *option_given(const char *driver, const char *parameter) {
    const char *found = NULL;
    const struct names files = files_of("/etc/modprobe.d/*.conf");
    for (size_t i = 0; i < files.count; i++) {
        struct text text = {0};
        if (read_any(files.at[i], &text) != DONE)
            continue;
        struct bytes rest = {text_string(&text), text.size}, line;
        while (next_line(&rest, &line)) {
            const char *value = option_in(line, driver, parameter);
            found = value ? value : found;
        }
    }
    forgive();
    return found;
}

/* What it was loaded with. */
static const char *given(const char *driver, const char *parameter) {
    char *value;
    struct text text = {0};
    if (read_value(print("/sys/module/%s/parameters/%s", driver, parameter), &value) == DONE && *value)
        return value;
    if (read_own(run_place(), print("module.%s.%s", driver, parameter), &text) == DONE && text.size > 1) {
        forgive();
        return keep(text.at, text.size - 1);
    }
    forgive();
    const char *option = option_given(driver, parameter);
    return option ? option : "-";
}

static enum outcome checked(const struct step *step) {
    return bytes_only((struct bytes){step->target, strlen(step->target)}, "_")
               ? DONE
               : complain("a driver has no parameter %s", step->target);
}

static enum outcome save(const struct step *step, struct state *state) {
    const char *driver;
    if (checked(step) != DONE || module_of(step->interface, &driver) != DONE)
        return FAILED;
    state_add(state, step->target, given(driver, step->target));
    return DONE;
}

static const char *others_of(const char *interface, const char *driver) {
    const struct names names = names_in(AT_FDCWD, "/sys/class/net");
    for (size_t i = 0; i < names.count; i++) {
        const char *its;
        if (!is_same(names.at[i], interface) && module_of(names.at[i], &its) == DONE && is_same(its, driver))
            return names.at[i];
    }
    forgive();
    return NULL;
}

struct link_before {
    const char *mtu;
    struct text addresses, routes;
};

static enum outcome look(const char *interface, struct link_before *before) {
    char *mtu;
    if (read_value(print("/sys/class/net/%s/mtu", interface), &mtu) != DONE ||
        ASK(&before->addresses, "ip", "-o", "addr", "show", "dev", interface, "scope", "global") != DONE ||
        ASK(&before->routes, "ip", "-4", "route", "show", "dev", interface) != DONE)
        return FAILED;
    before->mtu = mtu;
    return DONE;
}

static enum outcome put_addresses(const char *interface, const struct text *text) {
    struct bytes rest = {text_string(text), text->size}, line, word;
    while (next_line(&rest, &line)) {
        for (int i = 0; i < 4; i++) /* number, interface, family, address */
            if (!next_word(&line, &word))
                break;
        if (word.size && RUN("ip", "addr", "replace", keep(word.at, word.size), "dev", interface) != DONE)
            return FAILED;
    }
    return DONE;
}

struct words {
    const char *at[MOST_WORDS + 4];
    size_t count;
};

static void add_word(void *of, struct bytes word) {
    struct words *words = of;
    if (words->count < MOST_WORDS)
        words->at[words->count++] = keep(word.at, word.size);
}

static enum outcome put_routes(const char *interface, const struct text *text) {
    struct bytes rest = {text_string(text), text->size}, line;
    while (next_line(&rest, &line)) {
        struct words words = {.at = {"ip", "route", "replace"}, .count = 3};
        if (bytes_find(line, "proto kernel") < line.size)
            continue;
        each_route_word(line, NULL, add_word, &words);
        if (words.count == 3)
            continue;
        words.at[words.count++] = "dev";
        words.at[words.count++] = interface;
        if (tool_run(NULL, words.at) != DONE)
            return FAILED;
    }
    return DONE;
}

/* The link as it was before the driver went. */
static enum outcome bring_back(const char *interface, const struct link_before *before) {
    const char *path = print("/sys/class/net/%s", interface);
    for (int i = 0; !explaining && access(path, F_OK) != 0; i++) {
        if (i == WAIT_STEPS)
            return complain("%s did not come back", interface);
        wait_ms(STEP_MS);
    }
    if (RUN("ip", "link", "set", "dev", interface, "mtu", before->mtu, "up") != DONE)
        return FAILED;
    return put_addresses(interface, &before->addresses) == DONE ? put_routes(interface, &before->routes)
                                                                : FAILED;
}

static enum outcome load(const char *driver, const char *parameter, const char *value) {
    const char *note = print("module.%s.%s", driver, parameter);
    if (is_same(value, "-")) {
        if (RUN("modprobe", driver) != DONE)
            return FAILED;
        if (!explaining)
            remove_own(run_place(), note);
        return DONE;
    }
    if (RUN("modprobe", driver, print("%s=%s", parameter, value)) != DONE)
        return FAILED;
    const char *line = print("%s\n", value);
    return explaining ? DONE : store(run_place(), note, line, strlen(line), false);
}

static enum outcome set(const struct step *step, const char *value) {
    const char *driver;
    struct link_before before = {0};
    if (checked(step) != DONE || module_of(step->interface, &driver) != DONE)
        return FAILED;
    const char *other = others_of(step->interface, driver);
    if (other)
        return complain("%s also drives %s: loading it anew would take that down", driver, other);
    if (look(step->interface, &before) != DONE || RUN("modprobe", "-r", driver) != DONE)
        return FAILED;
    if (load(driver, step->target, value) == DONE)
        return bring_back(step->interface, &before);
    const char *why = complaint("it was refused");
    if (RUN("modprobe", driver) != DONE || bring_back(step->interface, &before) != DONE)
        return FAILED;
    return complain("%s", why);
}

static enum outcome put(const struct step *step) { return set(step, step->value); }

const struct kind kind_module = {.save = save, .put = put, .set = set};
