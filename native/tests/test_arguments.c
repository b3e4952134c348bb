#include "probe/arguments.h"
#include "tests/expect.h"

enum { WORDS_MAX = 16 };

/* Parse a command line given as words; returns what arguments_parse does. */
static int parse(enum program program, struct arguments *arguments, char *error, const char *const *words) {
    char *argv[WORDS_MAX + 1] = {(char *)"probe"};
    int argc = 1;
    for (; words[argc - 1] != NULL; argc++)
        argv[argc] = (char *)words[argc - 1];
    return arguments_parse(arguments, program, argc, argv, error);
}

#define NET(...) parse(PROGRAM_NET, &arguments, error, (const char *const[]){__VA_ARGS__, NULL})
#define REFUSED(option, ...)                                                                                 \
    do {                                                                                                     \
        EXPECT(NET(__VA_ARGS__) == -1);                                                                      \
        EXPECT(strstr(error, option) != NULL);                                                               \
    } while (0)

static void reads_all_kinds(void) {
    struct arguments arguments;
    char error[ARGUMENT_ERROR_BYTES] = "";
    EXPECT(NET("--op", "empty", "--sizes=0", "--seed", "18446744073709551615", "--yield", "--token-stdin") ==
           0);
    EXPECT_TEXT(arguments.op, "empty");
    EXPECT(arguments.size_count == 1 && arguments.sizes[0] == 0);
    EXPECT(arguments.seed == UINT64_MAX && arguments.yield && !arguments.server);
    EXPECT(arguments.token_stdin);
    EXPECT(arguments.sweeps == 5 && arguments.visit_us == 2000 && arguments.peer_timeout_s == 8);
    EXPECT(NET("--server", "--bind", "::1", "--port", "65535") == 0);
    EXPECT(arguments.server && arguments.port == 65535);
    EXPECT(NET("--list") == 0 && arguments.list);
}

static void names_what_is_wrong(void) {
    struct arguments arguments;
    char error[ARGUMENT_ERROR_BYTES] = "";
    REFUSED("--op", "--sizes", "0");
    REFUSED("--op", "--op", "no_such", "--sizes", "0");
    REFUSED("--sizes", "--op", "empty");
    REFUSED("--sizes", "--op", "empty", "--sizes", "1");
    REFUSED("--sizes", "--op", "empty", "--sizes", "0,0");
    REFUSED("--sizes", "--op", "empty", "--sizes", "0,");
    REFUSED("--sizes", "--op", "empty", "--sizes", "99999999999999999999999");
    REFUSED("--sweeps", "--op", "empty", "--sizes", "0", "--sweeps", "0");
    REFUSED("--sweeps", "--op", "empty", "--sizes", "0", "--sweeps", "-1");
    REFUSED("--seed", "--op", "empty", "--sizes", "0", "--seed", "18446744073709551616");
    REFUSED("--port", "--server", "--port", "65536");
    REFUSED("--token", "--server", "--token", "aF0"); /* anybody on the node could read it there */
    REFUSED("--server", "--server", "--connect", "a:1");
    REFUSED("--server", "--server=1");
    REFUSED("--seed", "--op", "empty", "--seed");
    REFUSED("--nonsense", "--nonsense");
}

static void knows_its_program(void) {
    struct arguments arguments;
    char error[ARGUMENT_ERROR_BYTES] = "";
    EXPECT(parse(PROGRAM_MPI, &arguments, error, (const char *const[]){"--server", NULL}) == -1);
    EXPECT(strstr(error, "--server") != NULL);
}

int main(void) {
    reads_all_kinds();
    names_what_is_wrong();
    knows_its_program();
    return EXPECT_STATUS();
}
