#include "probe/arguments.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/number.h"
#include "core/sort.h"
#include "probe/operation.h"
#include "probe/reference.h"

enum kind { KIND_FLAG, KIND_TEXT, KIND_NUMBER, KIND_SIZES };
enum { BOTH = PROGRAM_MPI | PROGRAM_NET };

struct option {
    const char *name;
    enum kind kind;
    int programs;
    size_t offset; /* in struct arguments */
    uint64_t low, high;
    const char *help;
};

#define AT(field) offsetof(struct arguments, field)

static const struct option OPTIONS[] = {
    {"--list", KIND_FLAG, BOTH, AT(list), 0, 0, "print the operations as JSON"},
    {"--parameters", KIND_FLAG, PROGRAM_MPI, AT(parameters), 0, 0,
     "print the parameters of the MPI library with their values, a line of JSON each"},
    {"--version", KIND_FLAG, BOTH, AT(version), 0, 0, "print the version"},
    {"--help", KIND_FLAG, BOTH, AT(help), 0, 0, "print this"},
    {"--server", KIND_FLAG, PROGRAM_NET, AT(server), 0, 0, "answer one client, then end"},
    {"--bind", KIND_TEXT, PROGRAM_NET, AT(bind), 0, 0, "server: address to listen at (127.0.0.1)"},
    {"--port", KIND_NUMBER, PROGRAM_NET, AT(port), 0, 65535,
     "server: port (0: any free one); client: source port of the first of many flows"},
    {"--connect", KIND_TEXT, PROGRAM_NET, AT(connect), 0, 0,
     "ADDRESS:PORT of the server; of several, separated by commas, for an operation of a group"},
    {"--op", KIND_TEXT, BOTH, AT(op), 0, 0, "operation, one of --list, or OPERATION:NUMBER"},
    {"--label", KIND_TEXT, BOTH, AT(label), 0, 0, "what to call it in the output (as --op says)"},
    {"--sizes", KIND_SIZES, BOTH, 0, 0, 0, "message sizes [B], separated by commas"},
    {"--sweeps", KIND_NUMBER, BOTH, AT(sweeps), 1, 100000, "measured visits of every size (5)"},
    {"--visit-us", KIND_NUMBER, BOTH, AT(visit_us), 1, 10000000, "length of a visit [us] (2000)"},
    {"--reference-us", KIND_NUMBER, BOTH, AT(reference_us), 0, REFERENCE_MAX_US,
     "length of a visit of the reference [us]; 0 for none (1000)"},
    {"--seed", KIND_NUMBER, BOTH, AT(seed), 0, UINT64_MAX, "seed of order and payload (1)"},
    {"--peer-timeout", KIND_NUMBER, BOTH, AT(peer_timeout_s), 1, 3600, "peer is gone after so long [s] (8)"},
    {"--datagram-timeout-us", KIND_NUMBER, PROGRAM_NET, AT(datagram_timeout_us), 100, 1000000,
     "datagram is lost after so long [us] (20000)"},
    {"--peer-name", KIND_TEXT, PROGRAM_NET, AT(peer_name), 0, 0,
     "what to call the servers in errors, in the order of --connect"},
    {"--token-stdin", KIND_FLAG, PROGRAM_NET, AT(token_stdin), 0, 0,
     "read the secret that client and server share from standard input"},
    {"--at-once", KIND_FLAG, PROGRAM_MPI, AT(at_once), 0, 0,
     "ranks 0 and 1, 2 and 3 ... are pairs that measure at the same time"},
    {"--calls", KIND_NUMBER, PROGRAM_MPI, AT(calls), 1, 1000000,
     "make so many calls of a collective at its first size, and nothing else"},
    {"--dir", KIND_TEXT, PROGRAM_MPI, AT(directory), 0, 0, "directory of the files of operations on files"},
    {"--thread-level", KIND_TEXT, PROGRAM_MPI, AT(thread_level), 0, 0,
     "what the MPI library is asked for: single, funneled, serialized or multiple (single)"},
    {"--alternate", KIND_TEXT, BOTH, AT(alternate), 0, 0,
     "PLACE where this node's guard makes the settings of --arms (PLACE.ask, PLACE.answer)"},
    {"--arms", KIND_TEXT, BOTH, AT(arms), 0, 0,
     "abba...: which setting comes when; without --alternate all are the same"},
    {"--dwell-sweeps", KIND_NUMBER, BOTH, AT(dwell_sweeps), 1, 100000, "sweeps under each of them (1)"},
    {"--settle-sweeps", KIND_NUMBER, BOTH, AT(settle_sweeps), 0, 100000,
     "of these, so many first ones are not recorded (0)"},
    {"--yield", KIND_FLAG, BOTH, AT(yield), 0, 0, "the ranks share a CPU: say so in hello"},
};
enum { OPTION_COUNT = sizeof OPTIONS / sizeof OPTIONS[0] };

static int complain(char *error, const char *option, const char *what, const char *value) {
    snprintf(error, ARGUMENT_ERROR_BYTES, "%s: %s%s%.80s%s", option, what, value ? " (got '" : "",
             value ? value : "", value ? "')" : "");
    return -1;
}

static int set_sizes(struct arguments *arguments, const char *text, char *error) {
    uint64_t sorted[SIZES_MAX];
    size_t count = 0;
    for (const char *item = text;; item++) {
        const size_t length = strcspn(item, ",");
        if (count == SIZES_MAX)
            return complain(error, "--sizes", "too many sizes, at most 4096 are possible", NULL);
        if (number_parse(item, length, &sorted[count]) != 0 || sorted[count] > MESSAGE_MAX_BYTES)
            return complain(error, "--sizes", "give sizes from 0 to 16777216 B, separated by commas", text);
        count++;
        item += length;
        if (*item == '\0')
            break;
    }
    sort_u64(sorted, count);
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && sorted[i] == sorted[i - 1])
            return complain(error, "--sizes", "a size is given twice", text);
        arguments->sizes[i] = (size_t)sorted[i];
    }
    arguments->size_count = count;
    return 0;
}

static int set(struct arguments *arguments, const struct option *option, const char *value, char *error) {
    char *field = (char *)arguments + option->offset;
    uint64_t number = 0;
    switch (option->kind) {
    case KIND_FLAG:
        *(bool *)(void *)field = true;
        return 0;
    case KIND_TEXT:
        *(const char **)(void *)field = value;
        return 0;
    case KIND_NUMBER:
        if (number_parse(value, strlen(value), &number) != 0 || number < option->low ||
            number > option->high) {
            char allowed[96];
            snprintf(allowed, sizeof allowed, "give a whole number from %" PRIu64 " to %" PRIu64, option->low,
                     option->high);
            return complain(error, option->name, allowed, value);
        }
        *(uint64_t *)(void *)field = number;
        return 0;
    case KIND_SIZES:
        return set_sizes(arguments, value, error);
    }
    return -1;
}

static const struct option *find(const char *text, size_t length, enum program program) {
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if ((OPTIONS[i].programs & (int)program) != 0 && strlen(OPTIONS[i].name) == length &&
            memcmp(OPTIONS[i].name, text, length) == 0)
            return &OPTIONS[i];
    return NULL;
}

/* Whether an operation is named that this program has, with sizes that it takes. */
static int check_operation(struct arguments *arguments, char *error) {
    if (arguments->op == NULL)
        return complain(error, "--op", "name an operation, one of --list", NULL);
    const struct operation *operation = operation_find(arguments->op);
    if (operation == NULL)
        return complain(error, "--op", "this program has no such operation, see --list", arguments->op);
    if (operation_parameter(arguments->op, &arguments->parameter) != 0) {
        const struct parameter *takes = &operation->parameter;
        char allowed[160];
        if (takes->name == NULL)
            snprintf(allowed, sizeof allowed, "%s takes no number", operation->name);
        else
            snprintf(allowed, sizeof allowed, "%s takes a number (%s) from %" PRIu64 " to %" PRIu64,
                     operation->name, takes->name, takes->low, takes->high);
        return complain(error, "--op", allowed, arguments->op);
    }
    if (operation->files && arguments->directory == NULL)
        return complain(error, "--dir", "name the directory of its files", NULL);
    if (arguments->size_count == 0)
        return complain(error, "--sizes", "give at least one message size", NULL);
    const size_t smallest = arguments->sizes[0];
    const size_t largest = arguments->sizes[arguments->size_count - 1];
    for (size_t i = 0; operation->size_step > 0 && i < arguments->size_count; i++) {
        if (arguments->sizes[i] % operation->size_step == 0)
            continue;
        char step[96];
        char given[24];
        snprintf(step, sizeof step, "%s takes multiples of %zu B", operation->name, operation->size_step);
        snprintf(given, sizeof given, "%zu", arguments->sizes[i]);
        return complain(error, "--sizes", step, given);
    }
    if (smallest >= operation->min_size && largest <= operation->max_size)
        return 0;
    char allowed[96];
    snprintf(allowed, sizeof allowed, "%s takes sizes from %zu to %zu B", operation->name,
             operation->min_size, operation->max_size);
    char size[24];
    snprintf(size, sizeof size, "%zu", smallest < operation->min_size ? smallest : largest);
    return complain(error, "--sizes", allowed, size);
}

static int check_arms(const struct arguments *arguments, char *error) {
    if (arguments->arms == NULL)
        return 0;
    if (arguments->settle_sweeps >= arguments->dwell_sweeps)
        return complain(error, "--settle-sweeps", "must be fewer than --dwell-sweeps", NULL);
    const size_t count = strlen(arguments->arms);
    if (strspn(arguments->arms, "ab") != count || strchr(arguments->arms, 'a') == NULL ||
        strchr(arguments->arms, 'b') == NULL)
        return complain(error, "--arms", "give letters a and b, both of them", arguments->arms);
    if (arguments->sweeps != count * arguments->dwell_sweeps)
        return complain(error, "--sweeps", "must be --dwell-sweeps for each of --arms", NULL);
    return 0;
}

static int check(struct arguments *arguments, enum program program, char *error) {
    if (arguments->help || arguments->list || arguments->version || arguments->parameters)
        return 0;
    if (arguments->server && arguments->connect != NULL)
        return complain(error, "--server", "cannot be together with --connect", NULL);
    if (arguments->server)
        return 0;
    if (check_operation(arguments, error) != 0 || check_arms(arguments, error) != 0)
        return -1;
    const bool alone = operation_find(arguments->op)->link == LINK_NONE;
    if (program == PROGRAM_NET && arguments->connect == NULL && !alone)
        return complain(error, "--connect", "give ADDRESS:PORT of a server, or --server to be one", NULL);
    return 0;
}

int arguments_parse(struct arguments *arguments, enum program program, int argc, char *const argv[],
                    char error[ARGUMENT_ERROR_BYTES]) {
    memset(arguments, 0, sizeof *arguments);
    arguments->sweeps = 5;
    arguments->dwell_sweeps = 1;
    arguments->visit_us = 2000;
    arguments->reference_us = 1000;
    arguments->seed = 1;
    arguments->peer_timeout_s = 8;
    arguments->datagram_timeout_us = 20000;
    for (int i = 1; i < argc; i++) {
        const size_t length = strcspn(argv[i], "=");
        const struct option *option = find(argv[i], length, program);
        if (option == NULL)
            return complain(error, "unknown option", "see --help", argv[i]);
        const char *value = argv[i][length] == '=' ? argv[i] + length + 1 : NULL;
        if (option->kind == KIND_FLAG && value != NULL)
            return complain(error, option->name, "takes no value", value);
        if (option->kind != KIND_FLAG && value == NULL && ++i == argc)
            return complain(error, option->name, "a value must follow", NULL);
        if (set(arguments, option, value != NULL ? value : argv[i], error) != 0)
            return -1;
    }
    if (arguments->label == NULL)
        arguments->label = arguments->op;
    return check(arguments, program, error);
}

void arguments_help(enum program program) {
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if ((OPTIONS[i].programs & (int)program) != 0)
            printf("  %-22s %s\n", OPTIONS[i].name, OPTIONS[i].help);
}
