#include "tracer/collect.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PART = 1 << 20, TAG = 1 };

/* Whether rank 0 has this rank's directory: it is looked for a file that rank 0 has just made. */
static bool is_beside_first(const char *directory, int rank) {
    char path[PATH_MAX] = "";
    if (rank == 0) {
        snprintf(path, sizeof path, "%s/.first.XXXXXX", directory);
        const int file = mkstemp(path);
        if (file < 0)
            path[0] = '\0';
        else
            close(file);
    }
    PMPI_Bcast(path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD);
    const bool is_there = path[0] == '\0' || access(path, F_OK) == 0;
    PMPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0 && path[0] != '\0')
        unlink(path);
    return is_there;
}

/* The file's bytes go to rank 0, if that wants them; first of all how many they are. */
static void hand_over(const char *directory, const char *path, char *part) {
    struct stat status;
    int is_wanted = 0;
    PMPI_Recv(&is_wanted, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!is_wanted)
        return;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    long long left = file >= 0 && fstat(file, &status) == 0 ? (long long)status.st_size : 0;
    PMPI_Send(&left, 1, MPI_LONG_LONG, 0, TAG, MPI_COMM_WORLD);
    while (left > 0) {
        const int want = left < PART ? (int)left : PART;
        if (read(file, part, (size_t)want) != want)
            memset(part, 0, (size_t)want); /* the checksum will not fit, and that is told */
        PMPI_Send(part, want, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
        left -= want;
    }
    if (file >= 0)
        close(file);
    unlink(path);
    rmdir(directory); /* by the last rank of the node: before, it is not empty */
}

/* Where the file is there already the two do see the same directory, if late. */
static void take_over(const char *directory, int rank, char *part) {
    char path[PATH_MAX];
    long long left = 0;
    snprintf(path, sizeof path, "%s/rank.%06d", directory, rank);
    const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    const int is_wanted = file >= 0;
    PMPI_Send(&is_wanted, 1, MPI_INT, rank, TAG, MPI_COMM_WORLD);
    if (!is_wanted) {
        if (errno != EEXIST)
            fprintf(stderr, "wulf-tracer: cannot write %s: %s\n", path, strerror(errno));
        return;
    }
    bool is_written = true;
    PMPI_Recv(&left, 1, MPI_LONG_LONG, rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    while (left > 0) {
        const int want = left < PART ? (int)left : PART;
        PMPI_Recv(part, want, MPI_BYTE, rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        is_written = is_written && write(file, part, (size_t)want) == want;
        left -= want;
    }
    if (close(file) != 0 || !is_written) {
        fprintf(stderr, "wulf-tracer: cannot write %s\n", path);
        unlink(path);
    }
}

void collect(const char *directory, const char *path) {
    int rank = 0;
    int ranks = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int is_far = !is_beside_first(directory, rank);
    int *far = rank == 0 ? calloc((size_t)ranks, sizeof *far) : NULL;
    char *part = malloc(PART);
    int is_ready = part != NULL && (rank != 0 || far != NULL);
    PMPI_Allreduce(MPI_IN_PLACE, &is_ready, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (is_ready) {
        PMPI_Gather(&is_far, 1, MPI_INT, far, 1, MPI_INT, 0, MPI_COMM_WORLD);
        for (int other = 0; rank == 0 && other < ranks; other++)
            if (far[other])
                take_over(directory, other, part);
        if (is_far)
            hand_over(directory, path, part);
    }
    free(part);
    free(far);
}
