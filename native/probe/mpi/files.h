/* Operations on files (MPI-IO): every rank reads or writes a piece, after a barrier. */
#ifndef WULF_MPI_FILES_H
#define WULF_MPI_FILES_H

#include "probe/mpi/collective.h"

enum sharing {
    FILES_OWN,        /* a file for each rank */
    FILES_SHARED,     /* one file, each rank for itself */
    FILES_COLLECTIVE, /* one file, all ranks in one call */
};

/* What an operation does. */
struct file_kind {
    enum sharing sharing;
    bool reads;
    bool to_the_disk; /* writes until the data is there (MPI_File_sync); reads what memory was asked to forget
                       */
};

int files_open(struct part *part, const struct file_kind *kind, struct failure *failure);
int files_close(struct part *part, struct failure *failure);
int files_before(const struct part *part);
int files_call(const struct part *part);
int files_after(const struct part *part);
bool files_right(const struct part *part);

/* Register an operation on files as mpi_file_NAME. */
#define WULF_FILE_OPERATION(ID, NAME, SHARING, READS, TO_THE_DISK, SUMMARY)                                  \
    static int open_##ID(struct part *part, struct failure *failure) {                                       \
        static const struct file_kind KIND = {SHARING, READS, TO_THE_DISK};                                  \
        return files_open(part, &KIND, failure);                                                             \
    }                                                                                                        \
    static const struct collective COLLECTIVE_##ID = {.call = files_call,                                    \
                                                      .right = files_right,                                  \
                                                      .open = open_##ID,                                     \
                                                      .close = files_close,                                  \
                                                      .before = files_before,                                \
                                                      .after = files_after};                                 \
    static int visit_##ID(struct visit *visit, struct failure *failure) {                                    \
        return collective_visit(&COLLECTIVE_##ID, WAY_AFTER_BARRIER, visit, failure);                        \
    }                                                                                                        \
    static const struct operation OPERATION_##ID = {.name = "mpi_file_" NAME,                                \
                                                    .summary = SUMMARY,                                      \
                                                    .link = LINK_MPI,                                        \
                                                    .group = true,                                           \
                                                    .files = true,                                           \
                                                    .pattern = "files",                                      \
                                                    .quantity = "longest time since a barrier",              \
                                                    .divisor = 1,                                            \
                                                    .min_size = 1,                                           \
                                                    .max_size = MESSAGE_MAX_BYTES,                           \
                                                    .moves_bytes = true,                                     \
                                                    .timing = TIMING_ITERATION,                              \
                                                    .visit_scale = FILES_VISIT_SCALE,                        \
                                                    .initiate = visit_##ID,                                  \
                                                    .respond = visit_##ID};                                  \
    __attribute__((constructor)) static void register_##ID(void) { operation_register(&OPERATION_##ID); }

enum { FILES_VISIT_SCALE = 10 };

#endif
