/* A parameter that the interface's driver takes only when it is loaded. Loading it anew takes the link down,
 * and addresses and routes with it: they are put back. `-` stands for "not given". */
#include "guard/kind/module.h"

#include "guard/answer.h"
#include "guard/kind/files.h"
#include "guard/kind/routes.h"
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

static enum outcome option_given(const char *driver, const char *parameter, const char **found) {
    struct names files;
    *found = "-";
    if (all_files_of("/etc/modprobe.d/*.conf", &files) != DONE)
        return FAILED;
    for (size_t i = 0; i < files.count; i++) {
        struct text text = {0};
        if (read_any(files.at[i], &text) != DONE)
            return FAILED;
        struct bytes rest = {text_string(&text), text.size}, line;
        while (next_line(&rest, &line)) {
            const char *value = option_in(line, driver, parameter);
            *found = value ? value : *found;
        }
    }
    return DONE;
}

/* Of drivers that do not show it. Not in /run, which somebody may wipe: the driver would stay as it is. */
static const char *note_of(const char *driver, const char *parameter) {
    return print("module.%s.%s", driver, parameter);
}

/* What it was loaded with. */
static enum outcome given(const char *driver, const char *parameter, const char **value) {
    char *shown;
    struct text text = {0};
    struct bytes boot;
    const char *note = note_of(driver, parameter);
    if (read_value(print("/sys/module/%s/parameters/%s", driver, parameter), &shown) == DONE && *shown) {
        *value = shown;
        return DONE;
    }
    forgive();
    if (is_there(state_place(), note)) {
        if (read_own(state_place(), note, &text) != DONE)
            return FAILED;
        struct bytes rest = {text_string(&text), text.size ? text.size - 1 : 0};
        if (cut(&rest, ' ', &boot) && bytes_are(boot, boot_id())) {
            *value = keep(rest.at, rest.size);
            return DONE;
        }
    }
    return option_given(driver, parameter, value);
}

static enum outcome checked(const struct step *step) {
    return bytes_only((struct bytes){step->target, strlen(step->target)}, "_")
               ? DONE
               : complain("a driver has no parameter %s", step->target);
}

static enum outcome save(const struct step *step, struct state *state) {
    const char *driver, *value;
    if (checked(step) != DONE || module_of(step->interface, &driver) != DONE ||
        given(driver, step->target, &value) != DONE)
        return FAILED;
    state_add(state, step->target, value);
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
    return names.are_some ? "others that cannot be listed" : NULL;
}

struct link_before {
    const char *mtu;
    struct text addresses, routes;
};

static enum outcome look(const char *interface, struct link_before *before) {
    char *mtu;
    if (read_value(print("/sys/class/net/%s/mtu", interface), &mtu) != DONE ||
        LIST(&before->addresses, "-V", "ip", "-o", "addr", "show", "dev", interface, "scope", "global") !=
            DONE ||
        routes_asked(&before->routes,
                     (const char *const[]){"ip", "-4", "route", "show", "dev", interface, NULL}) != DONE)
        return FAILED;
    before->mtu = mtu;
    return DONE;
}

/* Of a line of `ip -o addr show`: number, interface, family, address. */
static struct bytes address_of(struct bytes line) {
    struct bytes word = {0};
    for (int i = 0; i < 4; i++)
        if (!next_word(&line, &word))
            return (struct bytes){0};
    return word;
}

static enum outcome put_addresses(const char *interface, const struct text *text) {
    struct bytes rest = {text_string(text), text->size}, line;
    while (next_line(&rest, &line)) {
        const struct bytes address = address_of(line);
        if (address.size &&
            RUN("ip", "addr", "replace", keep(address.at, address.size), "dev", interface) != DONE)
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

/* As it was given: without what is only shown of it. */
static struct bytes route_of(struct bytes line) {
    struct words words = {0};
    struct text text = {0};
    if (bytes_find(line, "proto kernel") < line.size)
        return (struct bytes){0};
    each_route_word(line, NULL, add_word, &words);
    for (size_t i = 0; i < words.count; i++)
        text_print(&text, "%s ", words.at[i]);
    return (struct bytes){text_string(&text), text.size};
}

/* Whether each address, or route, that was listed before is listed now. */
static enum outcome require_all(const struct text *before, const struct text *now,
                                struct bytes (*of)(struct bytes line)) {
    struct bytes rest = {text_string(before), before->size}, line;
    while (next_line(&rest, &line)) {
        const struct bytes wanted = of(line);
        struct bytes others = {text_string(now), now->size}, other;
        bool found = !wanted.size;
        while (!found && next_line(&others, &other))
            found = bytes_are(of(other), keep(wanted.at, wanted.size));
        if (!found)
            return complain("ip exited with 0, but %s is not there", keep(wanted.at, wanted.size));
    }
    return DONE;
}

/* The word of `ip` is no proof that it has put them back. */
static enum outcome require_back(const char *interface, const struct link_before *before) {
    struct link_before now = {0};
    if (explaining)
        return DONE;
    if (look(interface, &now) != DONE || require_all(&before->addresses, &now.addresses, address_of) != DONE)
        return FAILED;
    if (!is_same(now.mtu, before->mtu))
        return complain("ip exited with 0, but %s has an MTU of %s", interface, now.mtu);
    return require_all(&before->routes, &now.routes, route_of);
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
    if (put_addresses(interface, &before->addresses) != DONE ||
        put_routes(interface, &before->routes) != DONE)
        return FAILED;
    return require_back(interface, before);
}

static enum outcome load(const char *driver, const char *parameter, const char *value) {
    const char *note = note_of(driver, parameter);
    if (is_same(value, "-")) {
        if (RUN("modprobe", driver) != DONE)
            return FAILED;
        if (!explaining)
            remove_own(state_place(), note);
        return DONE;
    }
    if (RUN("modprobe", driver, print("%s=%s", parameter, value)) != DONE)
        return FAILED;
    return explaining ? DONE : store_or_spare(state_place(), note, print("%s %s\n", boot_id(), value), false);
}

/* --- a guard that is ended while the driver is not loaded --- */

static enum outcome note_unloaded(const struct step *step, const char *driver,
                                  const struct link_before *before) {
    struct state state = {0};
    struct text text = {0};
    if (explaining)
        return DONE;
    state_add(&state, "boot", boot_id());
    state_add(&state, "driver", driver);
    state_add(&state, "parameter", step->target);
    state_add(&state, "mtu", before->mtu);
    state_add(&state, "addresses", text_string(&before->addresses));
    state_add(&state, "routes", text_string(&before->routes));
    state_write(&state, &text);
    return store_or_spare(state_place(), print(UNLOADED "%s", step->interface), text.at, false);
}

static void forget_unloaded(const char *interface) {
    if (!explaining)
        remove_own(state_place(), print(UNLOADED "%s", interface));
}

static enum outcome load_again(const char *interface, const struct state *state) {
    const char *driver = state_value(state, "driver"), *parameter = state_value(state, "parameter"),
               *addresses = state_value(state, "addresses"), *routes = state_value(state, "routes");
    struct link_before before = {.mtu = state_value(state, "mtu")};
    if (!driver || !parameter || !before.mtu || !addresses || !routes)
        return complain("how %s was cannot be read", interface);
    text_word(&before.addresses, addresses);
    text_word(&before.routes, routes);
    if (!is_there(AT_FDCWD, print("/sys/class/net/%s", interface)) && load(driver, parameter, "-") != DONE)
        return FAILED;
    return bring_back(interface, &before);
}

enum outcome modules_back(void) {
    const struct names names = names_with(state_place(), ".", UNLOADED);
    enum outcome outcome = DONE;
    for (size_t i = 0; i < names.count; i++) {
        const char *interface = names.at[i] + strlen(UNLOADED);
        struct text text = {0};
        struct state state = {0};
        if (ends_with(interface, ".new")) /* it was not written to its end, and nothing was unloaded */
            continue;
        const bool known =
            read_own(state_place(), names.at[i], &text) == DONE && state_read(&text, &state) == DONE;
        const char *boot = state_value(&state, "boot");
        if (boot && !is_same(boot, boot_id())) { /* it was loaded anew with that boot */
            forget_unloaded(interface);
            continue;
        }
        note("the driver of %s is loaded again: a guard was ended before that", interface);
        if (known && load_again(interface, &state) == DONE)
            forget_unloaded(interface);
        else
            outcome = FAILED;
    }
    return outcome;
}

/* Its own word is no proof: an interface whose driver is unloaded is gone. */
static enum outcome unload(const char *driver, const char *interface) {
    if (RUN("modprobe", "-r", driver) != DONE)
        return FAILED;
    return explaining || !is_there(AT_FDCWD, print("/sys/class/net/%s", interface))
               ? DONE
               : complain("modprobe -r %s exited with 0, but %s is still there", driver, interface);
}

static enum outcome set(const struct step *step, const char *value) {
    const char *driver;
    struct link_before before = {0};
    if (checked(step) != DONE || module_of(step->interface, &driver) != DONE)
        return FAILED;
    const char *other = others_of(step->interface, driver);
    if (other)
        return complain("%s also drives %s: loading it anew would take that down", driver, other);
    if (look(step->interface, &before) != DONE || note_unloaded(step, driver, &before) != DONE ||
        unload(driver, step->interface) != DONE)
        return FAILED;
    const bool loaded = load(driver, step->target, value) == DONE;
    const char *why = loaded ? NULL : complaint("it was refused");
    if ((!loaded && RUN("modprobe", driver) != DONE) || bring_back(step->interface, &before) != DONE)
        return FAILED;
    forget_unloaded(step->interface);
    return loaded ? DONE : complain("%s", why);
}

static enum outcome put(const struct step *step) { return set(step, step->value); }

const struct kind kind_module = {.save = save, .put = put, .set = set};
