/* wulf-probe-net: a client that measures and prints, or the server that answers it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/watchdog.h"
#include "probe/launch.h"
#include "probe/net/link.h"
#include "probe/net/socket.h"
#include "probe/net/trace.h"

static const char PROGRAM[] = "wulf-probe-net";
enum {
    ACCEPT_WITHIN_S = 30,
    SERVER_PATIENCE_S = 2 /* the client notices first: its word is the one that is read */
};

static int guard(const char *peer, unsigned timeout_s, struct failure *failure) {
    if (watchdog_start(STDOUT_FILENO, peer, timeout_s) == 0)
        return 0;
    return failure_set(failure, "system", "", "cannot set up the watchdog: %s", strerror(errno));
}

static int serve_client(struct net_link *link, const struct agreement *agreement, const char *alternate,
                        struct failure *failure) {
    const uint64_t begin_ns = clock_now_ns();
    const struct channel channel = net_channel(link);
    const struct responder responder = {.operation = agreement->operation,
                                        .parameter = agreement->parameter,
                                        .ranks = 2,
                                        .max_size = agreement->max_size,
                                        .alternate = alternate};
    if (guard(link->peer, agreement->peer_timeout_s + SERVER_PATIENCE_S, failure) != 0 ||
        sweep_respond(&responder, &channel, failure) != 0)
        return -1;
    if (line_end((double)(clock_now_ns() - begin_ns) / 1e9) != 0)
        return failure_set(failure, "system", "", "cannot write to standard output: %s", strerror(errno));
    return 0;
}

static int serve(const struct arguments *arguments, struct failure *failure) {
    struct node node;
    node_describe(&node);
    struct introduction introduction = {.program = PROGRAM,
                                        .nodes = &node,
                                        .node_count = 1,
                                        .yields = arguments->yield,
                                        .clock = clock_measure()};
    int tcp = -1;
    int udp = -1;
    struct net_link link = {.tcp = -1, .udp = -1};
    struct agreement agreement = {0};
    const char *address = arguments->bind == NULL ? "127.0.0.1" : arguments->bind;
    char token[TOKEN_MAX];
    if (token_read(arguments->token_stdin, token, failure) != 0)
        return -1;
    if (net_listen(address, (uint16_t)arguments->port, &tcp, &udp, &introduction.port, failure) != 0)
        return -1;
    if (line_hello(&introduction) != 0)
        return failure_set(failure, "system", "", "cannot write to standard output: %s", strerror(errno));
    int status = net_accept(token, tcp, udp, ACCEPT_WITHIN_S, &link, &agreement, failure);
    if (status == 0)
        status = serve_client(&link, &agreement, arguments->alternate, failure);
    net_close(&link);
    return status;
}

/* What to call the servers in errors that may be about any of them. */
static void name_peers(const struct net_links *links, char *name, size_t capacity) {
    size_t length = (size_t)snprintf(name, capacity, "%s%s", links->count > 1 ? "one of " : "",
                                     links->count > 0 ? links->each[0].peer : "");
    for (size_t i = 1; i < links->count && length < capacity; i++)
        length += (size_t)snprintf(name + length, capacity - length, ",%s", links->each[i].peer);
}

static int measure(const struct arguments *arguments, struct failure *failure) {
    static struct node nodes[1 + LINKS_MOST];
    static struct net_links links;
    struct introduction introduction = {
        .program = PROGRAM, .nodes = nodes, .node_count = 1, .yields = arguments->yield};
    node_describe(&nodes[0]);
    if (operation_find(arguments->op)->link == LINK_NONE)
        return launch_run(arguments, &introduction, NULL, NULL, failure);
    char token[TOKEN_MAX];
    if (token_read(arguments->token_stdin, token, failure) != 0)
        return -1;
    int status = net_join_all(arguments, token, &links, &nodes[1], failure);
    char peers[NODE_HOST_BYTES + sizeof "one of "];
    name_peers(&links, peers, sizeof peers);
    if (status == 0)
        status = guard(peers, (unsigned)arguments->peer_timeout_s, failure);
    if (status == 0) {
        const bool group = operation_find(arguments->op)->group;
        const struct channel channel =
            group ? net_channel_of_all(&links, peers) : net_channel(&links.each[0]);
        introduction.node_count = 1 + links.count;
        status = launch_run(arguments, &introduction, &channel, NULL, failure);
    }
    net_close_all(&links);
    return status;
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], TRACE_WORD) == 0)
        return trace_main(argc - 1, argv + 1);
    static struct arguments arguments;
    int exit_code = 0;
    if (launch_begin(&arguments, PROGRAM_NET, argc, argv, &exit_code) != 0)
        return exit_code;
    struct failure failure = {0};
    if ((arguments.server ? serve(&arguments, &failure) : measure(&arguments, &failure)) == 0)
        return 0;
    line_failure(&failure, STDOUT_FILENO);
    return FAILURE_EXIT;
}
