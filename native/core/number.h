/* Whole numbers in text. */
#ifndef WULF_NUMBER_H
#define WULF_NUMBER_H

#include <stddef.h>
#include <stdint.h>

/* Digits only: no sign, no space, no trailing text. 0, or -1 when it is no number of 64 bits. */
int number_parse(const char *text, size_t length, uint64_t *value);

#endif
