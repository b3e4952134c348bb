#ifndef WULF_GUARD_READ_BASE64_H
#define WULF_GUARD_READ_BASE64_H

#include "guard/base.h"
#include "guard/read/cursor.h"

/* Into `plain`, which has room for 3 bytes for each 4; DONE when all of it is base64 with its padding. */
MUST_CHECK enum outcome base64_read(struct bytes text, char *plain, size_t *size);
void base64_write(struct bytes plain, struct text *text);

#endif
