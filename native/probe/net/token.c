#include "probe/net/token.h"

#include <stdio.h>
#include <string.h>

int token_read(bool wanted, char token[TOKEN_MAX], struct failure *failure) {
    char line[TOKEN_MAX + 1] = ""; /* with its end */
    memset(token, 0, TOKEN_MAX);
    if (!wanted)
        return 0;
    const bool there = fgets(line, sizeof line, stdin) != NULL;
    const size_t length = strspn(line, "0123456789abcdefABCDEF");
    if (!there || length == 0 || length >= TOKEN_MAX || (line[length] != '\n' && line[length] != '\0'))
        return failure_set(failure, "token", "",
                           "--token-stdin: give a line of 1 to 127 hexadecimal digits on standard input");
    memcpy(token, line, length);
    return 0;
}

bool token_same(const char own[TOKEN_MAX], const char shown[TOKEN_MAX]) {
    unsigned char differs = 0;
    for (size_t i = 0; i < TOKEN_MAX; i++)
        differs |= (unsigned char)(own[i] ^ shown[i]);
    return differs == 0;
}
