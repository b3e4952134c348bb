#include "guard/kind/made.h"

#include "guard/device.h"
#include "guard/kind/files.h"
#include "guard/kind/link_file.h"
#include "guard/kind/module.h"
#include "guard/read/made.h"
#include "guard/scope.h"

#include <fcntl.h>
#include <string.h>

#define NETWORK "/etc/systemd/network/"
#define MODPROBE "/etc/modprobe.d/wulf.conf"
#define PLAIN "_@%+=:,./-" /* what a shell takes as it is, beside letters and digits */

/* --- which there are --- */

struct making {
    const struct step *step;
    struct made made;
    const char *interface;
    struct text *text;
};

struct form {
    const char *path; /* INTERFACE stands for the name of one */
    unsigned mode;
    const char *word, *text; /* of those whose text is the same for all: the item that it is for, or "" */
    enum outcome (*write)(struct making *making);
};

static enum outcome write_sysctls(struct making *making);
static enum outcome write_options(struct making *making);
static enum outcome write_link(struct making *making);
static enum outcome write_script(struct making *making);

static const struct form FORMS[] = {
    {"/etc/sysctl.d/90-wulf.conf", 0644, NULL, NULL, write_sysctls},
    {"/etc/sysctl.d/99-wulf.conf", 0644, NULL, NULL, write_sysctls},
    {"/etc/sysctl.d/zz-wulf.conf", 0644, NULL, NULL, write_sysctls},
    {"/etc/sysctl.d/zzzz-wulf.conf", 0644, NULL, NULL, write_sysctls},
    {MODPROBE, 0644, NULL, NULL, write_options},
    {NETWORK "10-wulf-INTERFACE.link", 0644, NULL, NULL, write_link},
    {NETWORK "00-wulf-INTERFACE.link", 0644, NULL, NULL, write_link},
#define MADE_SCRIPT(path, text) {path, 0755, NULL, text, write_script},
#define MADE_TEXT(path, mode, word, text) {path, mode, word, text, NULL},
#define MADE_LINK(path, target) {path, 0, "", target, NULL},
#include "guard/made.inc"
};

static char *kept_bytes(struct bytes bytes) { return keep(bytes.at, bytes.size); }

static bool is_dropin_of_network(const char *path) {
    const char *rest = starts_with(path, NETWORK) ? path + strlen(NETWORK) : "";
    return ends_with(rest, ".network.d/90-wulf.conf") && *rest != '.' &&
           strchr(rest, '/') == strrchr(rest, '/');
}

static bool is_path_of(const struct form *form, const char *path, const char *interface) {
    return is_same(replaced(form->path, "INTERFACE", interface), path);
}

/* Of any interface, whose name is told: of a file that is to go. */
static bool is_path(const char *path, const char **interface) {
    *interface = "";
    for (size_t i = 0; i < COUNT(FORMS); i++) {
        const char *here = strstr(FORMS[i].path, "INTERFACE");
        if (!here && is_same(FORMS[i].path, path))
            return true;
        const size_t before = here ? (size_t)(here - FORMS[i].path) : 0;
        const char *after = here ? here + strlen("INTERFACE") : "";
        if (here && strncmp(path, FORMS[i].path, before) == 0 && ends_with(path, after) &&
            strlen(path) > before + strlen(after)) {
            *interface = keep(path + before, strlen(path) - before - strlen(after));
            return is_interface((struct bytes){*interface, strlen(*interface)});
        }
    }
    return is_dropin_of_network(path);
}

static const struct form *form_of(const struct making *making) {
    const char *word = making->made.count == 1 && !making->made.items[0].value.at
                           ? kept_bytes(making->made.items[0].knob)
                           : "";
    for (size_t i = 0; i < COUNT(FORMS); i++)
        if (is_path_of(&FORMS[i], making->step->target, making->interface) &&
            (!FORMS[i].word || is_same(FORMS[i].word, word)))
            return &FORMS[i];
    return NULL;
}

/* --- settings --- */

/* The row of an item whose value it may have. */
static const struct known_knob *row_of(const struct made_item *item) {
    const struct known_knob *row = knob_named(item->knob);
    return row && item->value.at && read_value_of(row->type, row->ranges, row->words, item->value) == GRANTED
               ? row
               : NULL;
}

static enum outcome check_items(const struct making *making, const struct form *form) {
    if (form && !form->write)
        return making->made.count <= 1 ? DONE : complain("%s has no settings", making->step->target);
    for (size_t i = 0; i < making->made.count; i++)
        if (!row_of(&making->made.items[i]))
            return complain("%s: a setting is not in the catalogue with this value", making->step->target);
    return making->made.count ? DONE : complain("%s: there is nothing to keep", making->step->target);
}

static enum outcome read_step(const struct step *step, struct making *making) {
    *making = (struct making){.step = step};
    if (read_made((struct bytes){step->value, strlen(step->value)}, &making->made) != GRANTED)
        return complain("%s: what it is made of cannot be read", step->target);
    making->interface = kept_bytes(making->made.interface);
    const struct form *form = form_of(making);
    if (!form && !is_dropin_of_network(step->target))
        return complain("%s is no file that keeps settings", step->target);
    return check_items(making, form);
}

bool is_made(const char *value) { return starts_with(value, "made:"); }

enum outcome made_checked(const struct step *step, const char **interfaces) {
    struct making *making = take(sizeof *making);
    struct text words = {0};
    *interfaces = "";
    if (!is_same(step->interface, "-") || !is_same(step->knob, step->target))
        return complain("%s is no file that keeps settings", step->target);
    if (is_same(step->value, "absent") || *step->value == '@')
        return is_path(step->target, interfaces)
                   ? DONE
                   : complain("%s is no file that keeps settings", step->target);
    if (read_step(step, making) != DONE)
        return FAILED;
    if (!is_same(making->interface, "-"))
        text_word(&words, making->interface);
    for (size_t i = 0; i < making->made.count; i++)
        if (making->made.items[i].card.size)
            text_print(&words, " %s", kept_bytes(making->made.items[i].card));
    *interfaces = text_string(&words);
    return DONE;
}

/* --- texts --- */

static enum outcome write_sysctls(struct making *making) {
    for (size_t i = 0; i < making->made.count; i++) {
        const struct known_knob *row = row_of(&making->made.items[i]);
        if (!row || !is_same(row->kind, "sysctl"))
            return complain("%s is of sysctls", making->step->target);
        text_print(making->text, "%s = %s\n", row->target, kept_bytes(making->made.items[i].value));
    }
    return DONE;
}

static enum outcome write_options(struct making *making) {
    const char *driver;
    if (module_of(making->interface, &driver) != DONE)
        return FAILED;
    for (size_t i = 0; i < making->made.count; i++) {
        const struct known_knob *row = row_of(&making->made.items[i]);
        if (!row || !is_same(row->kind, "module"))
            return complain("%s is of drivers' parameters", making->step->target);
        text_print(making->text, "options %s %s=%s\n", driver, row->target,
                   kept_bytes(making->made.items[i].value));
    }
    return DONE;
}

static enum outcome write_link(struct making *making) {
    struct text own = {0};
    for (size_t i = 0; i < making->made.count; i++) {
        const struct known_knob *row = row_of(&making->made.items[i]);
        if (!row || link_lines(row, kept_bytes(making->made.items[i].value), &own) != DONE)
            return complain("a .link file cannot say %s", kept_bytes(making->made.items[i].knob));
    }
    return link_text(making->step->target, making->interface, text_string(&own), making->text);
}

static enum outcome write_network(struct making *making) {
    const struct known_knob *row = making->made.count == 1 ? row_of(&making->made.items[0]) : NULL;
    if (!row || !is_same(row->kind, "link") || !is_same(row->target, "mtu"))
        return complain("%s is of the MTU alone", making->step->target);
    if (network_file_checked(making->step->target, making->interface) != DONE)
        return FAILED;
    text_print(making->text, "[Link]\nMTUBytes=%s\n", kept_bytes(making->made.items[0].value));
    return DONE;
}

static char *quoted(const char *word) {
    const struct bytes bytes = {word, strlen(word)};
    return bytes_only(bytes, PLAIN) ? keep_text(word) : print("'%s'", word);
}

static enum outcome write_line(struct making *making, const struct made_item *item) {
    const struct known_knob *row = row_of(item);
    const struct known_kind *kind = row ? kind_named((struct bytes){row->kind, strlen(row->kind)}) : NULL;
    const char *part = kept_bytes(item->part),
               *interface = item->card.size ? kept_bytes(item->card) : making->interface;
    if (!kind || kind->lasts || !is_word_of(part, "node nic firewall latency") || !*part)
        return complain("a setting cannot be made at boot by itself: %s", kept_bytes(item->knob));
    if ((kind->of_interface || strstr(row->target, "INTERFACE")) && is_same(interface, "-"))
        return complain("%s is of an interface", row->knob);
    text_print(making->text, "keep %s %s %s %s %s %s\n", part, row->knob, row->kind, quoted(interface),
               quoted(replaced(row->target, "INTERFACE", interface)), quoted(kept_bytes(item->value)));
    return DONE;
}

static enum outcome write_lines(struct making *making) {
    for (size_t i = 0; i < making->made.count; i++)
        if (write_line(making, &making->made.items[i]) != DONE)
            return FAILED;
    return DONE;
}

/* Of the script the settings are lines in the middle. */
static enum outcome write_script(struct making *making) {
    struct text lines = {0}, *const text = making->text;
    making->text = &lines;
    const enum outcome outcome = write_lines(making);
    making->text = text;
    for (size_t i = 0; i < COUNT(FORMS); i++)
        if (FORMS[i].write == write_script)
            text_word(text, replaced(FORMS[i].text, "@LINES@", text_string(&lines)));
    return outcome;
}

static const char *head_of(const struct making *making) {
    return print(MADE_MARK "%s): `wulf rollback` takes it away.", kept_bytes(making->made.change));
}

enum outcome made_file(const struct step *step, struct kept *kept) {
    struct making *making = take(sizeof *making);
    struct text body = {0};
    *kept = (struct kept){
        .is = KEPT_FILE, .mode = 0644, .link = "", .uid = UINT32_MAX, .gid = UINT32_MAX, .seconds = -1};
    if (read_step(step, making) != DONE)
        return FAILED;
    const struct form *form = form_of(making);
    making->text = &body;
    if (form && !form->mode) {
        kept->is = KEPT_LINK;
        kept->link = form->text;
        return DONE;
    }
    if (form && !form->write)
        text_word(&body, form->text);
    else if ((form ? form->write(making) : write_network(making)) != DONE)
        return FAILED;
    kept->mode = form ? form->mode : 0644;
    const bool has_place = form && form->text;
    const char *text = has_place ? body.at : print("@HEAD@\n%s", text_string(&body));
    text = replaced(replaced(text, "@HEAD@", head_of(making)), "@INTERFACE@", making->interface);
    text_word(&kept->content, text);
    return DONE;
}

bool is_ours_or_absent(const char *path, const struct kept *now) {
    if (now->is == KEPT_ABSENT)
        return true;
    if (now->is == KEPT_LINK) {
        for (size_t i = 0; i < COUNT(FORMS); i++)
            if (!FORMS[i].mode && is_same(FORMS[i].path, path) && is_same(FORMS[i].text, now->link))
                return true;
        return false;
    }
    struct bytes rest = {text_string(&now->content), now->content.size}, line;
    for (int i = 0; i < 2 && next_line(&rest, &line); i++)
        if (bytes_begin(line, MADE_MARK))
            return true;
    return false;
}

/* --- whose it is --- */

static enum outcome require_interface(const char *path, const char *name) {
    return !*name || is_same(name, "-") || scope_grants_interface(name) == GRANTED
               ? DONE
               : complain(
                     "not through sudo: %s is of %s, too, which is not one of the interfaces in " SCOPE_PLACE,
                     path, name);
}

/* The interface that a line of a script of ours names; "" where it names none. */
static const char *named_in(struct bytes line) {
    static const struct {
        const char *start;
        int word;
    } known[] = {{"keep ", 4}, {"[ \"$1 $2\" = ", 4}, {"[ \"$IFACE\" = ", 3}};
    for (size_t i = 0; i < COUNT(known); i++) {
        struct bytes rest = line, word = {"", 0};
        if (!bytes_begin(line, known[i].start))
            continue;
        for (int j = 0; j <= known[i].word; j++)
            if (!next_word(&rest, &word))
                return "";
        return replaced(kept_bytes(word), "'", "");
    }
    return "";
}

/* A driver's options, and a file of networkd, may be those of several interfaces. */
static bool is_of_device(const char *path, const struct kept *kept, const char *interface) {
    const char *driver;
    const bool is_of = is_same(path, MODPROBE)
                           ? module_of(interface, &driver) == DONE &&
                                 strstr(text_string(&kept->content), print("options %s ", driver)) != NULL
                           : is_dropin_of_network(path) && network_file_checked(path, interface) == DONE;
    forgive();
    return is_of;
}

static enum outcome require_lines(const char *path, const struct kept *kept) {
    struct bytes rest = {text_string(&kept->content), kept->content.size}, line;
    while (next_line(&rest, &line))
        if (require_interface(path, named_in(line)) != DONE)
            return FAILED;
    return DONE;
}

/* What has the script run is of all that the script is of. */
static enum outcome require_script(const char *path) {
    const char *script = NULL;
    bool runs_it = false;
    struct kept kept;
    for (size_t i = 0; i < COUNT(FORMS); i++)
        if (FORMS[i].write == write_script)
            script = FORMS[i].path;
        else if (is_same(FORMS[i].path, path))
            runs_it = FORMS[i].text != NULL;
    if (!runs_it || !script)
        return DONE;
    return kept_read(script, &kept) == DONE ? require_lines(path, &kept) : FAILED;
}

enum outcome made_within_scope(const char *path, const struct kept *kept) {
    const char *name;
    if ((is_path(path, &name) && require_interface(path, name) != DONE) ||
        require_lines(path, kept) != DONE || require_script(path) != DONE)
        return FAILED;
    const struct names names = names_in(AT_FDCWD, "/sys/class/net");
    if (names.are_some)
        return complain("the interfaces of the node cannot be listed");
    for (size_t i = 0; i < names.count; i++)
        if (is_of_device(path, kept, names.at[i]) && require_interface(path, names.at[i]) != DONE)
            return FAILED;
    return DONE;
}
