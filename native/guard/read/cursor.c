#include "guard/read/cursor.h"

#include <string.h>

bool cut(struct bytes *rest, char mark, struct bytes *piece) {
    for (size_t i = 0; i < rest->size; i++)
        if (rest->at[i] == mark) {
            *piece = (struct bytes){rest->at, i};
            rest->at += i + 1;
            rest->size -= i + 1;
            return true;
        }
    return false;
}

bool next_line(struct bytes *rest, struct bytes *line) {
    if (!rest->size)
        return false;
    if (!cut(rest, '\n', line)) {
        *line = *rest;
        *rest = bytes_from(*rest, rest->size);
    }
    return true;
}

static bool is_blank(char byte) { return byte == ' ' || byte == '\t'; }

bool next_word(struct bytes *rest, struct bytes *word) {
    size_t begin = 0;
    while (begin < rest->size && is_blank(rest->at[begin]))
        begin++;
    size_t end = begin;
    while (end < rest->size && !is_blank(rest->at[end]))
        end++;
    *word = (struct bytes){rest->at + begin, end - begin};
    *rest = bytes_from(*rest, end);
    return word->size > 0;
}

bool bytes_are(struct bytes bytes, const char *text) {
    return strlen(text) == bytes.size && memcmp(bytes.at, text, bytes.size) == 0;
}

bool bytes_begin(struct bytes bytes, const char *text) {
    const size_t size = strlen(text);
    return bytes.size >= size && memcmp(bytes.at, text, size) == 0;
}

bool bytes_end(struct bytes bytes, const char *text) {
    const size_t size = strlen(text);
    return bytes.size >= size && memcmp(bytes.at + bytes.size - size, text, size) == 0;
}

bool bytes_same(struct bytes one, struct bytes other) {
    return one.size == other.size && (one.size == 0 || memcmp(one.at, other.at, one.size) == 0);
}

size_t bytes_find(struct bytes bytes, const char *text) {
    const size_t size = strlen(text);
    for (size_t i = 0; i + size <= bytes.size; i++)
        if (memcmp(bytes.at + i, text, size) == 0)
            return i;
    return bytes.size;
}

struct bytes bytes_trimmed(struct bytes bytes) {
    while (bytes.size && is_blank(bytes.at[0]))
        bytes = bytes_from(bytes, 1);
    while (bytes.size && is_blank(bytes.at[bytes.size - 1]))
        bytes.size--;
    return bytes;
}

struct bytes bytes_from(struct bytes bytes, size_t at) {
    if (at > bytes.size)
        at = bytes.size;
    return (struct bytes){bytes.at + at, bytes.size - at};
}

bool bytes_number(struct bytes bytes, uint64_t most, uint64_t *number) {
    if (!bytes.size || bytes.size > 19 || (bytes.size > 1 && bytes.at[0] == '0'))
        return false;
    uint64_t found = 0;
    for (size_t i = 0; i < bytes.size; i++) {
        if (bytes.at[i] < '0' || bytes.at[i] > '9')
            return false;
        found = found * 10 + (uint64_t)(bytes.at[i] - '0');
    }
    *number = found;
    return found <= most;
}

bool bytes_only(struct bytes bytes, const char *others) {
    for (size_t i = 0; i < bytes.size; i++) {
        const char byte = bytes.at[i];
        const bool plain =
            (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9');
        if (!plain && (!byte || !strchr(others, byte)))
            return false;
    }
    return bytes.size > 0;
}

bool bytes_printable(struct bytes bytes) {
    for (size_t i = 0; i < bytes.size; i++)
        if (bytes.at[i] < ' ' || bytes.at[i] > '~')
            return false;
    return bytes.size > 0;
}

bool is_interface(struct bytes bytes) {
    return bytes.size < 16 && bytes_only(bytes, "_.:@-") && bytes_only((struct bytes){bytes.at, 1}, "_");
}

/* Files of a change are written beside their names with `.new` at the end (store): no change may look so, or
 * its own would be passed over. */
bool is_change(struct bytes bytes) {
    return bytes.size <= 64 && bytes_only(bytes, "._-") && bytes.at[0] != '.' && !bytes_end(bytes, ".new");
}
