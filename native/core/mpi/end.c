#include "core/mpi/end.h"

#include <mpi.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/launch_file.h"
#include "core/lines.h"

enum { LOOKS = 2000 }; /* of 1 ms */

/* Wait until nothing is left in a pipe, at most LOOKS. The launcher of MPICH hears of an abort by another way
 * than a rank's output, and then leaves unread what it has not read yet. */
static void wait_until_read(int fd) {
    const struct timespec rest = {.tv_nsec = 1000000};
    struct stat found;
    int left = 0;
    if (fstat(fd, &found) != 0 || !S_ISFIFO(found.st_mode)) /* of others it says what is to be read here */
        return;
    for (int look = 0; look < LOOKS && ioctl(fd, FIONREAD, &left) == 0 && left > 0; look++)
        nanosleep(&rest, NULL);
}

void ranks_abort(int fd, int exit_code) {
    launch_file_remove();
    wait_until_read(fd);
    MPI_Abort(MPI_COMM_WORLD, exit_code);
}

void job_abort(const struct failure *failure, int rank) {
    const int fd = rank == 0 ? STDOUT_FILENO : STDERR_FILENO;
    line_failure(failure, fd);
    ranks_abort(fd, FAILURE_EXIT);
}
