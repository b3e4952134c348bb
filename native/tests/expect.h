/* Checks that say what was wrong and where, and go on. */
#ifndef WULF_TESTS_EXPECT_H
#define WULF_TESTS_EXPECT_H

#include <stdio.h>
#include <string.h>

static int expect_failures;

#define EXPECT(condition)                                                                                    \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                          \
            expect_failures++;                                                                               \
        }                                                                                                    \
    } while (0)

#define EXPECT_TEXT(got, wanted)                                                                             \
    do {                                                                                                     \
        if (strcmp((got), (wanted)) != 0) {                                                                  \
            fprintf(stderr, "%s:%d: got '%s', wanted '%s'\n", __FILE__, __LINE__, (got), (wanted));          \
            expect_failures++;                                                                               \
        }                                                                                                    \
    } while (0)

#define EXPECT_STATUS() (expect_failures == 0 ? 0 : 1)

#endif
