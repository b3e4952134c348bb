#include "apps/account.h"

#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>

#include "core/clock.h"

void account_enter(struct account *account) { account->entered_ns = clock_now_ns(); }

void account_leave(struct account *account) {
    account->communication_ns += clock_now_ns() - account->entered_ns;
}

void account_sent(struct account *account, uint64_t bytes) {
    account->messages++;
    account->bytes += bytes;
}

int account_total(const struct account *account, struct total *total) {
    const uint64_t own[] = {account->communication_ns, account->messages, account->bytes};
    uint64_t sum[] = {0, 0, 0};
    uint64_t longest_ns = 0;
    int ranks = 1;
    int code = MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (code == MPI_SUCCESS)
        code = MPI_Reduce(&account->run_ns, &longest_ns, 1, MPI_UINT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
    if (code == MPI_SUCCESS)
        code = MPI_Reduce(own, sum, 3, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    *total = (struct total){(double)longest_ns / 1e9, (double)sum[0] / 1e9 / ranks, sum[1], sum[2]};
    return code;
}

void account_print(const struct total *total) {
    printf("run_time_s %.6f\n", total->run_s);
    printf("communication_s %.6f\n", total->communication_s);
    printf("messages %" PRIu64 "\n", total->messages);
    printf("bytes %" PRIu64 "\n", total->bytes);
}

bool application_begin(const struct option *options, size_t count, int *argc, char ***argv, const char *what,
                       int *code) {
    char message[200] = "";
    const enum options_result result = options_read(options, count, *argc, *argv, message, sizeof message);
    *code = EXIT_RIGHT;
    if (result == OPTIONS_HELP)
        options_help(options, count, (*argv)[0], what);
    if (result == OPTIONS_VERSION)
        printf("%s\n", WULF_VERSION);
    if (result == OPTIONS_HELP || result == OPTIONS_VERSION)
        return false;
    *code = result == OPTIONS_WRONG ? EXIT_USAGE : EXIT_NOT_RIGHT;
    if (MPI_Init(argc, argv) != MPI_SUCCESS)
        return false;
    if (result == OPTIONS_RUN)
        return true;
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        fprintf(stderr, "%s: %s\n", (*argv)[0], message);
    MPI_Finalize();
    return false;
}
