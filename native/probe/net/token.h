/* The secret that client and server share. It comes on standard input: a command line can be read by
 * everybody. */
#ifndef WULF_NET_TOKEN_H
#define WULF_NET_TOKEN_H

#include <stdbool.h>

#include "core/failure.h"

enum { TOKEN_MAX = 128 };

/* Read it from the first line of standard input where it is `wanted`; it is empty otherwise. The rest of the
 * field is zero. */
int token_read(bool wanted, char token[TOKEN_MAX], struct failure *failure);

/* Takes the same time wherever the first difference is. */
bool token_same(const char own[TOKEN_MAX], const char shown[TOKEN_MAX]);

#endif
