#include "apps/nas.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/mpi/end.h"

enum { CLASSES = 3 };

static int timed(nas_kernel kernel, int number, struct account *account, bool *right) {
    int code = MPI_Barrier(MPI_COMM_WORLD);
    const uint64_t begin_ns = clock_now_ns();
    if (code == MPI_SUCCESS)
        code = kernel(number, account, right);
    /* A kernel may leave out what it makes ready. */
    if (account->run_ns == 0)
        account->run_ns = clock_now_ns() - begin_ns;
    return code;
}

int nas_main(int argc, char **argv, const char *name, const char *what, nas_kernel kernel) {
    const char *class = "S";
    const struct option options[] = {{.name = "--class", .text = &class, .help = "size: S, W or A"}};
    int code = EXIT_NOT_RIGHT;
    if (!application_begin(options, 1, &argc, &argv, what, &code))
        return code;
    struct account account = {0};
    struct total total = {0};
    bool right = false;
    int rank = 0;
    int ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int number = nas_class(class, CLASSES);
    if (number < 0) {
        if (rank == 0)
            fprintf(stderr, "wulf-%s: --class %s: it is S, W or A\n", name, class);
        MPI_Finalize();
        return EXIT_USAGE;
    }
    int said = timed(kernel, number, &account, &right);
    if (said != MPI_SUCCESS) {
        fprintf(stderr, "wulf-%s: rank %d cannot go on\n", name, rank);
        ranks_abort(STDERR_FILENO, EXIT_NOT_RIGHT); /* the others wait for this one */
    }
    if (said == MPI_SUCCESS)
        said = account_total(&account, &total);
    if (said == MPI_SUCCESS && rank == 0) {
        printf("program %s\nclass %s\nranks %d\n", name, class, ranks);
        account_print(&total);
        printf("result %s\n", right ? "right" : "wrong");
        if (!right)
            fprintf(stderr, "wulf-%s: the result of class %s is not that of the specification\n", name,
                    class);
    }
    MPI_Finalize();
    return said == MPI_SUCCESS && right ? EXIT_RIGHT : EXIT_NOT_RIGHT;
}
