#include "guard/kind/link_file.h"

#include "guard/device.h"
#include "guard/file.h"
#include "guard/kind/files.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define FOUND "/systemd/network/"

/* From the strongest: a file hides those of the same name in the ones behind it. */
static const char *const DIRECTORIES[] = {"/etc" FOUND, "/run" FOUND, "/usr/local/lib" FOUND,
                                          "/usr/lib" FOUND, "/lib" FOUND};

/* --- what a value is --- */

static const char *yes_or_no(const char *value) {
    return is_word_of(value, "on 1") ? "yes" : is_word_of(value, "off 0") ? "no" : NULL;
}

static char *titled(const char *word) {
    char *title = keep_text(word);
    if (*title >= 'a' && *title <= 'z')
        *title = (char)(*title - 'a' + 'A');
    return title;
}

/* Each parameter of a target with its value: one value holds for all. */
struct pairs {
    struct names names, values;
};

static struct pairs pairs_of(const struct known_knob *row, const char *value) {
    return (struct pairs){words_of(row->target), words_of(value)};
}

static const char *name_at(const struct pairs *pairs, size_t i) {
    const char *dot = strchr(pairs->names.at[i], '.');
    return dot ? dot + 1 : "";
}

static const char *value_at(const struct pairs *pairs, size_t i) {
    return pairs->values.at[pairs->values.count == pairs->names.count ? i : 0];
}

static enum outcome feature_lines(const struct pairs *pairs, struct text *text) {
    static const char *const known[][2] = {{"generic-receive-offload", "GenericReceiveOffload"},
                                           {"large-receive-offload", "LargeReceiveOffload"},
                                           {"tcp-segmentation-offload", "TCPSegmentationOffload"},
                                           {"generic-segmentation-offload", "GenericSegmentationOffload"}};
    for (size_t i = 0; i < pairs->names.count; i++) {
        const char *key = NULL, *state = yes_or_no(value_at(pairs, i));
        for (size_t j = 0; j < COUNT(known); j++)
            if (is_same(known[j][0], name_at(pairs, i)))
                key = known[j][1];
        if (!key || !state)
            return FAILED;
        text_print(text, "%s=%s\n", key, state);
    }
    return DONE;
}

static enum outcome coalesce_lines(const struct pairs *pairs, struct text *text) {
    const char *name = name_at(pairs, 0), *value = value_at(pairs, 0), *state = yes_or_no(value);
    const char *way = starts_with(name, "rx") || ends_with(name, "rx") ? "Rx" : "Tx";
    uint64_t number;
    if (starts_with(name, "adaptive-")) {
        if (!state)
            return FAILED;
        text_print(text, "UseAdaptive%sCoalesce=%s\n", way, state);
        return DONE;
    }
    if (!bytes_number((struct bytes){value, strlen(value)}, INT32_MAX, &number))
        return FAILED;
    /* An adaptive driver takes no notice of a fixed delay. */
    if (ends_with(name, "-usecs"))
        text_print(text, "UseAdaptive%sCoalesce=no\n%sCoalesceSec=%sus\n", way, way, value);
    else if (ends_with(name, "-frames"))
        text_print(text, "UseAdaptive%sCoalesce=no\n%sMaxCoalescedFrames=%s\n", way, way, value);
    else
        return FAILED;
    return DONE;
}

static enum outcome ring_lines(const struct pairs *pairs, struct text *text) {
    for (size_t i = 0; i < pairs->names.count; i++)
        if (is_word_of(name_at(pairs, i), "rx tx"))
            text_print(text, "%sBufferSize=%s\n", titled(name_at(pairs, i)), value_at(pairs, i));
    return text->size ? DONE : FAILED;
}

static enum outcome channel_lines(const struct pairs *pairs, struct text *text) {
    for (size_t i = 0; i + 1 < pairs->values.count; i += 2)
        text_print(text, "%sChannels=%s\n", titled(pairs->values.at[i]), pairs->values.at[i + 1]);
    return text->size ? DONE : FAILED;
}

static enum outcome pause_lines(const struct pairs *pairs, struct text *text) {
    text_word(text, "AutoNegotiationFlowControl=no\n");
    for (size_t i = 0; i < pairs->names.count; i++) {
        const char *state = yes_or_no(value_at(pairs, i));
        if (!state)
            return FAILED;
        text_print(text, "%sFlowControl=%s\n", titled(name_at(pairs, i)), state);
    }
    return DONE;
}

static const struct {
    const char *group;
    enum outcome (*lines)(const struct pairs *pairs, struct text *text);
} GROUPS_OF_LINK[] = {{"feature", feature_lines},
                      {"coalesce", coalesce_lines},
                      {"ring", ring_lines},
                      {"channels", channel_lines},
                      {"pause", pause_lines}};

/* A line that is there already says the same: two knobs may turn the adaptive driver off. */
static void add_new_lines(struct text *text, const struct text *lines) {
    struct bytes rest = {text_string(lines), lines->size}, line;
    while (next_line(&rest, &line)) {
        const char *whole = print("%s\n", keep(line.at, line.size));
        const char *there = strstr(text_string(text), whole);
        if (!there || (there != text->at && there[-1] != '\n'))
            text_word(text, whole);
    }
}

enum outcome link_lines(const struct known_knob *row, const char *value, struct text *text) {
    struct text lines = {0};
    const struct pairs pairs = pairs_of(row, value);
    const size_t size = strcspn(row->target, ". ");
    if (is_same(row->kind, "link") && is_same(row->target, "mtu")) {
        text_print(&lines, "MTUBytes=%s\n", value);
        add_new_lines(text, &lines);
        return DONE;
    }
    for (size_t i = 0; is_same(row->kind, "ethtool") && pairs.values.count && i < COUNT(GROUPS_OF_LINK); i++)
        if (strlen(GROUPS_OF_LINK[i].group) == size &&
            strncmp(GROUPS_OF_LINK[i].group, row->target, size) == 0 &&
            GROUPS_OF_LINK[i].lines(&pairs, &lines) == DONE) {
            add_new_lines(text, &lines);
            return DONE;
        }
    return FAILED;
}

/* --- what others say --- */

static const char *base_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* KEY=/path in a file that udev or networkd keeps about an interface. */
static const char *path_said(const char *directory, const char *interface, const char *key) {
    char *index;
    struct text text = {0};
    struct bytes line;
    if (read_value(print("/sys/class/net/%s/ifindex", interface), &index) != DONE ||
        read_any(print("%s%s", directory, index), &text) != DONE)
        return NULL;
    for (struct bytes rest = {text_string(&text), text.size}; next_line(&rest, &line);)
        if (bytes_begin(line, key) && line.size > strlen(key) && line.at[strlen(key)] == '/') {
            line = bytes_from(line, strlen(key));
            return bytes_printable(line) ? keep(line.at, line.size) : NULL;
        }
    return NULL;
}

enum outcome network_file_checked(const char *path, const char *interface) {
    const char *file = path_said("/run/systemd/netif/links/", interface, "NETWORK_FILE=");
    forgive();
    if (!file)
        return complain("systemd-networkd does not configure %s", interface);
    return ends_with(path, print("/%s.d/90-wulf.conf", base_of(file)))
               ? DONE
               : complain("%s is of another file than %s, which systemd-networkd has applied", path, file);
}

/* The lines of the first [Link] section: a second one in a file of ours is our own. */
static void add_section(const struct text *from, struct text *text) {
    struct bytes rest = {text_string(from), from->size}, line, name;
    bool inside = false;
    for (int sections = 0; next_line(&rest, &line);) {
        line = bytes_trimmed(line);
        if (line.size && line.at[0] == '[') {
            inside = bytes_are(line, "[Link]") && sections == 0;
            sections += bytes_are(line, "[Link]");
        } else if (inside && bytes_printable(line) && cut(&line, '=', &name)) {
            struct bytes word;
            name = bytes_trimmed(name);
            text_print(text, "%s=", keep(name.at, name.size));
            for (bool first = true; next_word(&line, &word); first = false)
                text_print(text, "%s%s", first ? "" : " ", keep(word.at, word.size));
            text_word(text, "\n");
        }
    }
}

static enum outcome add_file(const char *path, struct text *text) {
    const char *directory = keep(path, (size_t)(base_of(path) - path) - 1);
    struct text content = {0};
    char *real = realpath(directory, NULL); /* /lib may be a link */
    const bool good = real && !is_open_to_others(real);
    free(real);
    if (!good)
        return complain("%s is not root's alone", directory);
    if (read_any(path, &content) != DONE)
        return FAILED;
    add_section(&content, text);
    return DONE;
}

static bool is_hidden(size_t from, const char *name, const char *dropin) {
    for (size_t i = 0; i < from; i++)
        if (is_there(AT_FDCWD, print("%s%s.d/%s", DIRECTORIES[i], name, dropin)))
            return true;
    return false;
}

static int by_base(const void *one, const void *other) {
    return strcmp(base_of(*(char *const *)one), base_of(*(char *const *)other));
}

/* Drop-ins of all directories, by their names. */
static enum outcome add_dropins(const char *name, struct text *text) {
    struct text words = {0};
    for (size_t i = 0; i < COUNT(DIRECTORIES); i++) {
        const char *directory = print("%s%s.d", DIRECTORIES[i], name);
        const struct names names = names_in(AT_FDCWD, directory);
        if (names.are_some)
            return complain("%s cannot be listed", directory);
        for (size_t j = 0; j < names.count; j++)
            if (!is_hidden(i, name, names.at[j]) && ends_with(names.at[j], ".conf"))
                text_print(&words, "%s/%s ", directory, names.at[j]);
    }
    struct names all = words_of(text_string(&words));
    if (all.count)
        qsort(all.at, all.count, sizeof *all.at, by_base);
    for (size_t i = 0; i < all.count; i++)
        if (add_file(all.at[i], text) != DONE)
            return FAILED;
    return DONE;
}

static const char *applied(const char *interface) {
    const char *path = path_said("/run/udev/data/n", interface, "E:ID_NET_LINK_FILE=");
    forgive();
    for (size_t i = 0; path && i < COUNT(DIRECTORIES); i++)
        if (starts_with(path, DIRECTORIES[i]) && !strchr(path + strlen(DIRECTORIES[i]), '/'))
            return path;
    return NULL;
}

/* Those of `lines` whose key is not in `own`. */
static void add_others(const struct text *lines, const char *own, struct text *text) {
    struct bytes rest = {text_string(lines), lines->size}, line;
    while (next_line(&rest, &line)) {
        struct bytes value = line, key;
        if (!cut(&value, '=', &key))
            continue;
        const char *start = print("\n%s=", keep(key.at, key.size));
        if (!strstr(print("\n%s", own), start))
            text_print(text, "%s\n", keep(line.at, line.size));
    }
}

enum outcome link_text(const char *path, const char *interface, const char *own, struct text *text) {
    const char *before = applied(interface), *address = device_permanent(interface);
    struct text carried = {0};
    if (!before || !address)
        return complain("%s has no %s by which a .link file could be of it", interface,
                        before ? "permanent address" : "file that udev has applied");
    if (strcmp(base_of(path), base_of(before)) > 0)
        return complain("%s comes before %s, and would count", before, path);
    if (add_file(before, &carried) != DONE || add_dropins(base_of(before), &carried) != DONE)
        return FAILED;
    text_print(text,
               "[Match]\nPermanentMACAddress=%s\nType=ether\n\n"
               "# As in %s, which applied before: the name does not change.\n[Link]\n",
               address, before);
    add_others(&carried, own, text);
    text_print(text, "\n[Link]\n%s", own);
    return DONE;
}
