#include "core/record.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void append(struct record *record, const char *text, size_t length) {
    if (record->failed)
        return;
    if (record->length + length > record->capacity) {
        const size_t capacity = (record->length + length) * 2 + 256;
        char *grown = realloc(record->text, capacity);
        if (grown == NULL) {
            record->failed = true;
            return;
        }
        record->text = grown;
        record->capacity = capacity;
    }
    memcpy(record->text + record->length, text, length);
    record->length += length;
}

static void append_text(struct record *record, const char *text) { append(record, text, strlen(text)); }

static void separate(struct record *record) {
    if (record->comma)
        append(record, ",", 1);
    record->comma = true;
}

void record_open(struct record *record, char bracket) {
    separate(record);
    append(record, &bracket, 1);
    record->comma = false;
}

void record_close(struct record *record, char bracket) {
    append(record, &bracket, 1);
    record->comma = true;
}

void record_key(struct record *record, const char *key) {
    record_string(record, key);
    append(record, ":", 1);
    record->comma = false;
}

/* Length of the UTF-8 character that begins here; 0 when what begins here is not one (RFC 3629). */
static size_t utf8_length(const unsigned char *s) {
    if (s[0] < 0x80)
        return 1;
    size_t length = 0;
    if (s[0] >= 0xc2 && s[0] <= 0xdf)
        length = 2;
    else if (s[0] >= 0xe0 && s[0] <= 0xef)
        length = 3;
    else if (s[0] >= 0xf0 && s[0] <= 0xf4)
        length = 4;
    for (size_t i = 1; i < length; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    const bool overlong = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
    const bool surrogate = s[0] == 0xed && s[1] > 0x9f;
    const bool beyond = s[0] == 0xf4 && s[1] > 0x8f;
    return overlong || surrogate || beyond ? 0 : length;
}

static void append_character(struct record *record, const unsigned char *s, size_t length) {
    char escaped[8];
    if (length == 0)
        append_text(record, "\xef\xbf\xbd");
    else if (*s == '"' || *s == '\\')
        append(record, (const char[]){'\\', (char)*s}, 2);
    else if (*s < 0x20 || *s == 0x7f) {
        snprintf(escaped, sizeof escaped, "\\u%04x", *s);
        append_text(record, escaped);
    } else
        append(record, (const char *)s, length);
}

void record_string(struct record *record, const char *text) {
    separate(record);
    append(record, "\"", 1);
    const unsigned char *s = (const unsigned char *)text;
    while (*s != '\0') {
        const size_t length = utf8_length(s);
        append_character(record, s, length);
        s += length == 0 ? 1 : length;
    }
    append(record, "\"", 1);
}

void record_unsigned(struct record *record, uint64_t value) {
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    separate(record);
    append_text(record, text);
}

void record_double(struct record *record, double value, int decimals) {
    if (!isfinite(value)) {
        record_null(record);
        return;
    }
    char text[352]; /* the longest double has 309 digits before the point */
    snprintf(text, sizeof text, "%.*f", decimals, value);
    separate(record);
    append_text(record, text);
}

void record_bool(struct record *record, bool value) {
    separate(record);
    append_text(record, value ? "true" : "false");
}

void record_null(struct record *record) {
    separate(record);
    append_text(record, "null");
}

void record_begin(struct record *record, const char *type) {
    record->length = 0;
    record->comma = false;
    record_open(record, '{');
    record_pair_string(record, "type", type);
}

void record_pair_string(struct record *record, const char *key, const char *text) {
    record_key(record, key);
    record_string(record, text);
}

void record_pair_unsigned(struct record *record, const char *key, uint64_t value) {
    record_key(record, key);
    record_unsigned(record, value);
}

void record_pair_double(struct record *record, const char *key, double value, int decimals) {
    record_key(record, key);
    record_double(record, value, decimals);
}

void record_pair_bool(struct record *record, const char *key, bool value) {
    record_key(record, key);
    record_bool(record, value);
}

void record_doubles(struct record *record, const char *key, const double *values, size_t count,
                    int decimals) {
    record_key(record, key);
    record_open(record, '[');
    for (size_t i = 0; i < count; i++)
        record_double(record, values[i], decimals);
    record_close(record, ']');
}

void record_wholes(struct record *record, const char *key, const uint64_t *values, size_t count) {
    record_key(record, key);
    record_open(record, '[');
    for (size_t i = 0; i < count; i++)
        record_unsigned(record, values[i]);
    record_close(record, ']');
}

int record_write(struct record *record, int fd) {
    append(record, "\n", 1);
    if (record->failed) {
        errno = ENOMEM;
        return -1;
    }
    size_t written = 0;
    while (written < record->length) {
        const ssize_t n = write(fd, record->text + written, record->length - written);
        if (n < 0 && errno != EINTR)
            return -1;
        if (n > 0)
            written += (size_t)n;
    }
    record->length = 0;
    record->comma = false;
    return 0;
}

void record_free(struct record *record) {
    free(record->text);
    *record = (struct record){0};
}
