/* Why a launch cannot go on: what the error line says. */
#ifndef WULF_FAILURE_H
#define WULF_FAILURE_H

enum { FAILURE_EXIT = 3, USAGE_EXIT = 2 };

struct failure {
    char code[16];  /* one of the protocol's codes; empty while nothing has failed */
    char peer[256]; /* who is concerned; may be empty */
    char message[512];
};

/* Note a failure, unless there is one already: the first is the cause. Returns -1, so that a function can
 * `return failure_set(…)`. */
__attribute__((format(printf, 4, 5))) int failure_set(struct failure *failure, const char *code,
                                                      const char *peer, const char *format, ...);

#endif
