#include "guard/read/base64.h"

#include <string.h>

static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int digit(char byte) {
    const char *at = byte ? strchr(DIGITS, byte) : NULL;
    return at ? (int)(at - DIGITS) : -1;
}

enum outcome base64_read(struct bytes text, char *plain, size_t *size) {
    *size = 0;
    if (text.size % 4)
        return FAILED;
    for (size_t i = 0; i < text.size; i += 4) {
        const bool last = i + 4 == text.size;
        const size_t pads =
            last ? (size_t)(text.at[i + 3] == '=') + (text.at[i + 2] == '=' && text.at[i + 3] == '=') : 0;
        unsigned bits = 0;
        for (size_t j = 0; j < 4; j++) {
            const int value = j >= 4 - pads ? 0 : digit(text.at[i + j]);
            if (value < 0)
                return FAILED;
            bits = bits << 6 | (unsigned)value;
        }
        if ((pads == 1 && (bits & 0xff)) || (pads == 2 && (bits & 0xffff)))
            return FAILED;
        for (size_t j = 0; j < 3 - pads; j++)
            plain[(*size)++] = (char)(bits >> (16 - 8 * j) & 0xff);
    }
    return DONE;
}

void base64_write(struct bytes plain, struct text *text) {
    for (size_t i = 0; i < plain.size; i += 3) {
        const size_t some = plain.size - i < 3 ? plain.size - i : 3;
        unsigned bits = 0;
        for (size_t j = 0; j < 3; j++)
            bits = bits << 8 | (j < some ? (unsigned char)plain.at[i + j] : 0U);
        char four[4];
        for (size_t j = 0; j < 4; j++)
            four[j] = j > some ? '=' : DIGITS[bits >> (18 - 6 * j) & 63];
        text_add(text, four, 4);
    }
}
