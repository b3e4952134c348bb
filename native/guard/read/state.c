#include "guard/read/state.h"

#include "guard/sha256.h"

enum outcome read_state_end(struct bytes text, struct bytes *body, uint64_t *count) {
    if (!text.size || text.at[text.size - 1] != '\n')
        return FAILED;
    size_t begin = text.size - 1;
    while (begin && text.at[begin - 1] != '\n')
        begin--;
    *body = (struct bytes){text.at, begin};
    struct bytes line = {text.at + begin, text.size - 1 - begin}, word;
    if (!cut(&line, '\t', &word) || !bytes_are(word, "end") || !cut(&line, '\t', &word) ||
        !bytes_number(word, 1000000, count))
        return FAILED;
    char hex[65];
    sha256_hex(text.at, begin, hex);
    return bytes_are(line, hex) ? SOUND : FAILED;
}

enum outcome read_state_line(struct bytes *rest, struct state_line *line) {
    struct bytes text;
    if (!cut(rest, '\n', &text) || !cut(&text, '\t', &line->key) || !line->key.size)
        return FAILED;
    line->is_volatile = false;
    if (cut(&text, '\t', &line->value)) {
        line->is_volatile = bytes_are(text, "volatile");
        return line->is_volatile ? DONE : FAILED;
    }
    line->value = text;
    return DONE;
}

enum outcome unescape(struct bytes escaped, char *plain, size_t *size) {
    *size = 0;
    for (size_t i = 0; i < escaped.size; i++) {
        char byte = escaped.at[i];
        if (!byte)
            return FAILED;
        if (byte == '\\') {
            if (++i == escaped.size)
                return FAILED;
            byte = escaped.at[i];
            if (byte != '\\' && byte != 't' && byte != 'n')
                return FAILED;
            byte = (char)(byte == 't' ? '\t' : byte == 'n' ? '\n' : '\\');
        }
        plain[(*size)++] = byte;
    }
    return DONE;
}
