#include "guard/read/ethtool.h"

#include <string.h>

enum { NAME = 64 };

static bool is_switch(struct bytes value) { return bytes_are(value, "on") || bytes_are(value, "off"); }

static bool is_count(struct bytes value) {
    uint64_t number;
    return bytes_number(value, UINT32_MAX, &number);
}

/* Lower case, with hyphens for spaces; false where it is too long. */
static bool lowered(struct bytes text, char name[NAME]) {
    if (text.size >= NAME)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        const char byte = text.at[i];
        name[i] = (char)(byte == ' ' ? '-' : byte >= 'A' && byte <= 'Z' ? byte + 'a' - 'A' : byte);
    }
    name[text.size] = 0;
    return true;
}

/* "Adaptive RX: on  TX: n/a" */
static void read_ways(struct bytes line, const char *kind, ethtool_pair *pair, void *of) {
    struct bytes word, value;
    while (next_word(&line, &word))
        if ((bytes_are(word, "RX:") || bytes_are(word, "TX:")) && next_word(&line, &value) &&
            is_switch(value)) {
            char name[NAME];
            strcpy(name, kind);
            strcat(name, word.at[0] == 'R' ? "-rx" : "-tx");
            pair(of, name, strlen(name), value, false);
        }
}

static void read_coalesce(struct bytes line, ethtool_pair *pair, void *of) {
    struct bytes name;
    if (bytes_begin(line, "Adaptive"))
        read_ways(line, "adaptive", pair, of);
    else if (bytes_begin(line, "CQE mode"))
        read_ways(line, "cqe-mode", pair, of);
    else if (cut(&line, ':', &name) && bytes_only(name, "-") && is_count(bytes_trimmed(line)))
        pair(of, name.at, name.size, bytes_trimmed(line), false);
}

static void read_counts(struct bytes line, bool maximum, ethtool_pair *pair, void *of) {
    static const char *const known[] = {"rx", "tx", "rx-mini", "rx-jumbo", "other", "combined"};
    struct bytes label;
    char name[NAME];
    if (!cut(&line, ':', &label) || !is_count(bytes_trimmed(line)) || !lowered(label, name))
        return;
    for (size_t i = 0; i < COUNT(known); i++)
        if (strcmp(name, known[i]) == 0)
            pair(of, name, strlen(name), bytes_trimmed(line), maximum);
}

const char *ethtool_short(struct bytes name) {
    static const char *const names[][2] = {{"rx-checksumming", "rx"},
                                           {"tx-checksumming", "tx"},
                                           {"scatter-gather", "sg"},
                                           {"tcp-segmentation-offload", "tso"},
                                           {"udp-fragmentation-offload", "ufo"},
                                           {"generic-segmentation-offload", "gso"},
                                           {"generic-receive-offload", "gro"},
                                           {"large-receive-offload", "lro"},
                                           {"rx-vlan-offload", "rxvlan"},
                                           {"tx-vlan-offload", "txvlan"},
                                           {"ntuple-filters", "ntuple"},
                                           {"receive-hashing", "rxhash"}};
    for (size_t i = 0; i < COUNT(names); i++)
        if (bytes_are(name, names[i][0]))
            return names[i][1];
    return NULL;
}

static void read_feature(struct bytes line, ethtool_pair *pair, void *of) {
    struct bytes name, value;
    if (!cut(&line, ':', &name) || bytes_find(line, "[fixed]") < line.size || !next_word(&line, &value) ||
        !is_switch(value))
        return;
    name = bytes_trimmed(name);
    const char *other = ethtool_short(name);
    if (other)
        pair(of, other, strlen(other), value, false);
    else if (bytes_only(name, "-_"))
        pair(of, name.at, name.size, value, false);
}

static void read_pause(struct bytes line, ethtool_pair *pair, void *of) {
    struct bytes label;
    if (!cut(&line, ':', &label) || !is_switch(bytes_trimmed(line)))
        return;
    const char *name = bytes_are(label, "Autonegotiate") ? "autoneg"
                       : bytes_are(label, "RX")          ? "rx"
                       : bytes_are(label, "TX")          ? "tx"
                                                         : NULL;
    if (name)
        pair(of, name, strlen(name), bytes_trimmed(line), false);
}

static void read_eee(struct bytes line, ethtool_pair *pair, void *of) {
    line = bytes_trimmed(line);
    if (!bytes_begin(line, "EEE status:"))
        return;
    line = bytes_trimmed(bytes_from(line, strlen("EEE status:")));
    const struct bytes on = {"on", 2}, off = {"off", 3};
    if (bytes_begin(line, "disabled"))
        pair(of, "eee", 3, off, false);
    else if (bytes_begin(line, "enabled"))
        pair(of, "eee", 3, on, false);
}

void read_ethtool(enum ethtool_group group, struct bytes said, ethtool_pair *pair, void *of) {
    bool maximum = true;
    for (struct bytes line; next_line(&said, &line);) {
        if (bytes_begin(line, "Current"))
            maximum = false;
        if (group == COALESCE)
            read_coalesce(line, pair, of);
        else if (group == RING || group == CHANNELS)
            read_counts(line, maximum, pair, of);
        else if (group == FEATURE)
            read_feature(line, pair, of);
        else if (group == PAUSE)
            read_pause(line, pair, of);
        else
            read_eee(line, pair, of);
    }
}
