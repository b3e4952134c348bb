/* The command line. */
#ifndef WULF_ARGUMENTS_H
#define WULF_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SIZES_MAX = 4096, ARGUMENT_ERROR_BYTES = 256 };

enum program { PROGRAM_MPI = 1, PROGRAM_NET = 2 };

struct arguments {
    bool help, list, version, parameters, server, yield, token_stdin, at_once;
    /* NULL when not given */
    const char *op, *label, *bind, *connect, *peer_name, *alternate, *arms, *directory, *thread_level;
    uint64_t parameter; /* of the operation */
    uint64_t calls;     /* 0 when not given */
    uint64_t dwell_sweeps, settle_sweeps, port, sweeps, visit_us, reference_us, seed, peer_timeout_s,
        datagram_timeout_us;
    size_t sizes[SIZES_MAX]; /* ascending, each once */
    size_t size_count;
};

/* Read the command line of one of the two programs. 0, or -1 with a line that names the option in `error`. */
int arguments_parse(struct arguments *arguments, enum program program, int argc, char *const argv[],
                    char error[ARGUMENT_ERROR_BYTES]);

/* The options of a program, for people. */
void arguments_help(enum program program);

#endif
