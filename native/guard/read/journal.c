#include "guard/read/journal.h"

#include "guard/sha256.h"

static bool next_pair(struct bytes *rest, const char *key, struct bytes *value) {
    struct bytes line, name;
    if (!cut(rest, '\n', &line) || !cut(&line, '\t', &name) || !bytes_are(name, key))
        return false;
    *value = line;
    return true;
}

static bool next_number(struct bytes *rest, const char *key, uint64_t most, uint64_t *number) {
    struct bytes value;
    return next_pair(rest, key, &value) && bytes_number(value, most, number);
}

enum outcome read_about(struct bytes text, struct about_text *about) {
    *about = (struct about_text){0};
    if (!next_number(&text, "format", UINT32_MAX, &about->format)) {
        about->format = 0;
        return FAILED;
    }
    const bool good =
        about->format == JOURNAL_FORMAT && next_number(&text, "number", UINT32_MAX, &about->number) &&
        next_pair(&text, "owner", &about->owner) && next_number(&text, "uid", UINT32_MAX, &about->uid) &&
        next_pair(&text, "boot", &about->boot) && next_pair(&text, "at", &about->at) &&
        next_number(&text, "steps", 65535, &about->steps) && bytes_printable(about->owner) &&
        bytes_only(about->boot, "-") && bytes_printable(about->at);
    about->rest = text;
    return good ? DONE : FAILED;
}

enum outcome read_sums(struct bytes text, struct bytes *lines, uint64_t *count) {
    if (!text.size || text.at[text.size - 1] != '\n')
        return FAILED;
    size_t begin = text.size - 1;
    while (begin && text.at[begin - 1] != '\n')
        begin--;
    *lines = (struct bytes){text.at, begin};
    struct bytes last = {text.at + begin, text.size - 1 - begin}, word;
    char hex[65];
    sha256_hex(text.at, begin, hex);
    if (!cut(&last, '\t', &word) || !bytes_are(word, "seal") || !cut(&last, '\t', &word) ||
        !bytes_number(word, 65535 + 2, count))
        return FAILED;
    return bytes_are(last, hex) ? SOUND : FAILED;
}

enum outcome read_sum_line(struct bytes *rest, struct sum_line *line) {
    struct bytes text, size;
    if (!cut(rest, '\n', &text) || !cut(&text, '\t', &line->digest) || line->digest.size != 64 ||
        !cut(&text, '\t', &size) || !bytes_number(size, UINT32_MAX, &line->size) || !bytes_only(text, "."))
        return FAILED;
    line->name = text;
    return DONE;
}

enum outcome read_tx_state(struct bytes text, struct bytes *word, struct bytes *why) {
    static const char *const words[] = {"preparing", "prepared", "applying",  "applied",  "undoing",
                                        "stuck",     "undone",   "confirmed", "abandoned"};
    struct bytes line;
    *why = (struct bytes){0};
    if (!cut(&text, '\n', &line) || text.size)
        return FAILED;
    if (cut(&line, '\t', word))
        *why = line;
    else
        *word = line;
    for (size_t i = 0; i < COUNT(words); i++)
        if (bytes_are(*word, words[i]))
            return DONE;
    return FAILED;
}
