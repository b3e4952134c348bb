#include "guard/read/nft.h"

#include <string.h>

/* "TEXT # handle N" */
static struct bytes without_handle(struct bytes text, uint64_t *handle) {
    static const char mark[] = " # handle ";
    *handle = 0;
    for (size_t at = text.size; at-- > 0;)
        if (text.at[at] == ' ' && bytes_begin(bytes_from(text, at), mark)) {
            if (bytes_number(bytes_from(text, at + strlen(mark)), UINT64_MAX / 2, handle))
                text.size = at;
            return text;
        }
    return text;
}

/* Where the quotes that are open at the begin are closed, whether a } outside of them ends the elements. */
static bool ends_elements(struct bytes line, bool *quoted) {
    bool ends = false;
    for (size_t i = 0; i < line.size; i++) {
        if (line.at[i] == '"')
            *quoted = !*quoted;
        if (!*quoted && line.at[i] == '}')
            ends = true;
    }
    return ends;
}

static struct bytes elements_from(struct bytes line, struct bytes *rest) {
    bool quoted = false;
    struct bytes all = line, next;
    for (bool end = ends_elements(line, &quoted); !end && next_line(rest, &next);) {
        end = ends_elements(next, &quoted);
        all.size = (size_t)(next.at + next.size - all.at);
    }
    return all;
}

static void read_base(struct bytes text, struct nft_line *line) {
    static const char *const hooks[] = {"input ", "prerouting ", "output ", "postrouting "};
    static const char start[] = "type filter hook ";
    if (!bytes_begin(text, start))
        return;
    for (size_t i = 0; i < COUNT(hooks); i++)
        if (bytes_begin(bytes_from(text, strlen(start)), hooks[i])) {
            line->what = NFT_BASE;
            line->is_input = i < 2;
        }
}

static void read_inner(struct bytes whole, struct bytes *rest, struct nft_line *line) {
    struct bytes text = bytes_trimmed(whole), word;
    if (bytes_begin(whole, "\t}")) {
        line->chain = (struct bytes){0};
    } else if (bytes_begin(whole, "\tchain ")) {
        line->what = NFT_CHAIN;
        text = bytes_from(text, strlen("chain "));
        if (next_word(&text, &word))
            line->chain = word;
    } else if (bytes_begin(whole, "\tset ") || bytes_begin(whole, "\tmap ")) {
        line->what = NFT_SET;
    } else if (!line->chain.size && bytes_begin(text, "elements = {")) {
        line->what = NFT_ELEMENTS;
        line->text = elements_from(whole, rest);
    } else if (!line->chain.size && bytes_begin(text, "flags ")) {
        line->what = NFT_FLAGS;
        line->is_dynamic = bytes_find(text, "dynamic") < text.size;
    } else if (line->chain.size) {
        line->what = line->handle ? NFT_RULE : NFT_OTHER;
        if (!line->handle)
            read_base(text, line);
    }
}

bool is_nft(struct bytes listing) {
    bool inside = false;
    for (struct bytes line; next_line(&listing, &line);) {
        if (!line.size || line.at[0] == '#')
            continue;
        const bool begins = !inside && bytes_begin(line, "table "), ends = inside && bytes_are(line, "}");
        if (!begins && !ends && !(inside && line.at[0] == '\t'))
            return false;
        inside = !ends;
    }
    return !inside;
}

void read_nft(struct bytes listing, void (*of_line)(void *of, const struct nft_line *line), void *of) {
    struct nft_line line = {0};
    for (struct bytes text, word; next_line(&listing, &text);) {
        line.what = NFT_OTHER;
        line.is_dynamic = line.is_input = false;
        line.text = without_handle(text, &line.handle);
        if (bytes_begin(text, "table ")) {
            struct bytes words = bytes_from(line.text, strlen("table "));
            line.what = NFT_TABLE;
            line.table_handle = line.handle;
            line.chain = (struct bytes){0};
            line.family = next_word(&words, &word) ? word : (struct bytes){0};
            line.table = next_word(&words, &word) ? word : (struct bytes){0};
        } else if (bytes_are(text, "}")) {
            line.what = NFT_END;
        } else {
            read_inner(line.text, &listing, &line);
        }
        of_line(of, &line);
    }
}

void each_element(struct bytes text, void (*element)(void *of, struct bytes element), void *of) {
    const size_t open = bytes_find(text, "{");
    size_t end = text.size;
    while (end > open && text.at[end - 1] != '}')
        end--;
    if (end <= open + 1)
        return;
    bool quoted = false;
    size_t begin = open + 1;
    for (size_t i = begin; i < end; i++) {
        if (text.at[i] == '"')
            quoted = !quoted;
        if (quoted || (text.at[i] != ',' && i + 1 < end))
            continue;
        struct bytes one = {text.at + begin, i - begin};
        while (one.size && (one.at[0] == ' ' || one.at[0] == '\n' || one.at[0] == '\t'))
            one = bytes_from(one, 1);
        one = bytes_trimmed(one);
        if (one.size)
            element(of, one);
        begin = i + 1;
    }
}

static uint64_t unit_seconds(struct bytes *rest) {
    static const struct {
        const char *name;
        uint64_t seconds;
    } units[] = {{"ms", 0}, {"w", 604800}, {"d", 86400}, {"h", 3600}, {"m", 60}, {"s", 1}};
    for (size_t i = 0; i < COUNT(units); i++)
        if (bytes_begin(*rest, units[i].name)) {
            *rest = bytes_from(*rest, strlen(units[i].name));
            return units[i].seconds;
        }
    *rest = bytes_from(*rest, rest->size);
    return 0;
}

/* "1h59m30s500ms" */
static uint64_t seconds_of(struct bytes time) {
    uint64_t sum = 0;
    while (time.size) {
        uint64_t number = 0;
        while (time.size && time.at[0] >= '0' && time.at[0] <= '9' && number < UINT32_MAX) {
            number = number * 10 + (uint64_t)(time.at[0] - '0');
            time = bytes_from(time, 1);
        }
        sum += number * unit_seconds(&time);
    }
    return sum;
}

bool read_expiry(struct bytes element, size_t *begin, size_t *end, uint64_t *seconds) {
    static const char mark[] = " expires ";
    bool quoted = false;
    for (size_t i = 0; i < element.size; i++) {
        if (element.at[i] == '"')
            quoted = !quoted;
        if (quoted || !bytes_begin(bytes_from(element, i), mark))
            continue;
        struct bytes rest = bytes_from(element, i + strlen(mark)), time;
        if (!next_word(&rest, &time))
            return false;
        *begin = i;
        *end = (size_t)(time.at + time.size - element.at);
        *seconds = seconds_of(time);
        return true;
    }
    return false;
}

static size_t number_at(struct bytes text, size_t at) {
    size_t size = 0;
    while (at + size < text.size && text.at[at + size] >= '0' && text.at[at + size] <= '9')
        size++;
    return size;
}

/* WORD NUMBER: how long it is, or 0. */
static size_t word_number(struct bytes text, size_t at, const char *word) {
    if (!bytes_begin(bytes_from(text, at), word))
        return 0;
    const size_t size = number_at(text, at + strlen(word));
    return size ? strlen(word) + size : 0;
}

size_t passing_part(struct bytes text, size_t at) {
    const size_t packets = word_number(text, at, "packets ");
    if (packets) {
        const size_t bytes = word_number(text, at + packets, " bytes ");
        return bytes ? packets + bytes : 0;
    }
    size_t used = word_number(text, at, "used ");
    if (used || bytes_begin(bytes_from(text, at), "last ")) {
        used = used ? used : strlen("last");
        if (at + used < text.size && text.at[at + used] == ' ')
            used++;
        while (at + used < text.size && text.at[at + used] > ' ')
            used++;
        return used;
    }
    return 0;
}
