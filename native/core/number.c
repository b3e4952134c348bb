#include "core/number.h"

int number_parse(const char *text, size_t length, uint64_t *value) {
    if (length == 0 || length > 20)
        return -1;
    uint64_t sum = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        const uint64_t digit = (uint64_t)(text[i] - '0');
        if (sum > (UINT64_MAX - digit) / 10)
            return -1;
        sum = sum * 10 + digit;
    }
    *value = sum;
    return 0;
}
