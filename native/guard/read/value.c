#include "guard/read/value.h"

#include <string.h>

enum { MOST = 200, MOST_DIGITS = 19 };

static bool is_one_of(struct bytes word, const char *words) {
    struct bytes rest = {words, strlen(words)}, one;
    while (next_word(&rest, &one))
        if (bytes_same(one, word))
            return true;
    return false;
}

static bool read_in_range(struct range range, struct bytes text, int64_t *value) {
    const bool negative = text.size && text.at[0] == '-' && range.low < 0;
    uint64_t number;
    if (!bytes_number(bytes_from(text, negative), INT64_MAX, &number) || (negative && number == 0))
        return false;
    *value = negative ? -(int64_t)number : (int64_t)number;
    return *value >= range.low && *value <= range.high;
}

static bool in_range(struct range range, struct bytes text) {
    int64_t value;
    return read_in_range(range, text, &value);
}

/* As many as there are ranges, with one space between them. */
static bool are_numbers(const struct range ranges[MOST_RANGES], bool rising, struct bytes value) {
    int64_t before = INT64_MIN, number;
    bool more = true;
    for (size_t i = 0; i < MOST_RANGES && (ranges[i].low || ranges[i].high); i++) {
        struct bytes word = value;
        if (!more)
            return false;
        more = cut(&value, ' ', &word);
        if (!read_in_range(ranges[i], word, &number) || (rising && number < before))
            return false;
        before = number;
    }
    return !more;
}

static bool is_mask(struct bytes word) {
    for (size_t i = 0; i < word.size; i++) {
        const char byte = word.at[i];
        if (!((byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f') ||
              (byte == ',' && i && i + 1 < word.size)))
            return false;
    }
    return word.size > 0;
}

static bool is_cpus(struct bytes word) { /* 0-3,5 */
    struct bytes rest = word, one;
    for (bool more = true; more;) {
        more = cut(&rest, ',', &one);
        if (!more)
            one = rest;
        struct bytes low = one;
        uint64_t first, last;
        if (cut(&one, '-', &low)) {
            if (!bytes_number(low, 65535, &first) || !bytes_number(one, 65535, &last) || first > last)
                return false;
        } else if (!bytes_number(one, 65535, &first)) {
            return false;
        }
    }
    return true;
}

static bool is_good_word(enum value_type type, struct bytes word) {
    switch (type) {
    case CPUS:
        return is_cpus(word);
    case MASKS:
        return is_mask(word);
    case LISTS:
        return bytes_only(word, "_.,:;=/+^-") && word.at[0] != '-';
    case SIZES:
        return bytes_are(word, "max") || in_range((struct range){0, INT32_MAX}, word);
    case SWITCHES:
        return bytes_are(word, "on") || bytes_are(word, "off");
    default:
        return false;
    }
}

/* Words with one space between them. */
static bool are_good_words(enum value_type type, struct bytes value) {
    struct bytes word;
    while (cut(&value, ' ', &word))
        if (!is_good_word(type, word))
            return false;
    return is_good_word(type, value);
}

static bool are_pairs(struct bytes value) {
    struct bytes name, number;
    for (;;) {
        if (!cut(&value, ' ', &name) || !is_one_of(name, "rx tx combined other"))
            return false;
        const bool more = cut(&value, ' ', &number);
        if (!in_range((struct range){0, 65535}, more ? number : value))
            return false;
        if (!more)
            return true;
    }
}

static bool is_name(struct bytes value) {
    return bytes_only(value, "_.-") && value.at[0] != '-' && value.at[0] != '.';
}

static bool are_states(struct bytes value) {
    if (bytes_are(value, "all allowed"))
        return true;
    if (!bytes_begin(value, "disabled: "))
        return false;
    struct bytes rest = bytes_from(value, 10), name;
    while (cut(&rest, ' ', &name))
        if (!is_name(name))
            return false;
    return is_name(rest);
}

static bool is_duration(struct bytes value) {
    if (bytes_are(value, "default"))
        return true;
    if (bytes_end(value, "ms"))
        value.size -= 2;
    return in_range((struct range){0, 600000}, value);
}

static bool is_good(enum value_type type, const struct range ranges[MOST_RANGES], const char *words,
                    struct bytes value) {
    switch (type) {
    case NUMBER:
        return in_range(ranges[0], value) || is_one_of(value, words);
    case NUMBERS:
    case RISING:
        return are_numbers(ranges, type == RISING, value);
    case WORDS:
        return is_one_of(value, words);
    case NAME:
        return is_name(value);
    case TEXT:
        return bytes_only(value, "_.,:;=/+-");
    case DURATION:
        return is_duration(value);
    case STATES:
        return are_states(value);
    case PAIRS:
        return are_pairs(value);
    default:
        return are_good_words(type, value);
    }
}

enum outcome read_value_of(enum value_type type, const struct range ranges[MOST_RANGES], const char *words,
                           struct bytes value) {
    return value.size && value.size <= MOST && is_good(type, ranges, words, value) ? GRANTED : FAILED;
}
