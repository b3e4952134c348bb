#include "probe/mpi/files.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/launch_file.h"
#include "core/node.h"
#include "core/watchdog.h"
#include "probe/mpi/filesystem.h"
#include "probe/mpi/resident.h"

enum {
    AREA_BYTES = 4 << 20, /* of a rank, about */
    PIECES_MOST = 64,
    PATH_BYTES = 1024,
    NAME_BYTES = 128,
    MODE = 0600,
};
static const char KIND[] = "wulf-probe-files";

/* The files of a visit, on one rank. */
struct files {
    const struct file_kind *kind;
    MPI_File file;
    struct resident resident;
    uint64_t pieces; /* of each rank; iterations go through them again and again */
    int code;        /* of the first call that failed: it is told when the files are removed */
    bool wrong;
    char path[PATH_BYTES];
};

static bool own(const struct files *files) { return files->kind->sharing == FILES_OWN; }

static bool makes_the_file(const struct part *part) {
    return part->rank == 0 || own((const struct files *)part->state);
}

static uint64_t piece_of(const struct part *part) {
    return part->iteration % ((const struct files *)part->state)->pieces;
}

/* Whose piece a rank reads: of a shared file that of the next one, which another node has written. */
static int read_from(const struct part *part) {
    return own((const struct files *)part->state) ? part->rank : (part->rank + 1) % part->ranks;
}

static MPI_Offset place_of(const struct part *part, uint64_t piece, int rank) {
    const struct files *files = part->state;
    const uint64_t index = own(files) ? piece : piece * (uint64_t)part->ranks + (uint64_t)rank;
    return (MPI_Offset)(index * (uint64_t)part->size);
}

/* All ranks fail where one has, with its reason. */
static int all_or_none(const struct part *part, int result, struct failure *failure) {
    int first = result == 0 ? part->ranks : part->rank;
    int code = MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, part->comm);
    if (code == MPI_SUCCESS && first == part->ranks)
        return 0;
    struct failure said = *failure;
    if (code == MPI_SUCCESS)
        code = MPI_Bcast(&said, (int)sizeof said, MPI_BYTE, first, part->comm);
    if (code != MPI_SUCCESS)
        return mpi_failed(part->visit->link, code, failure);
    *failure = said;
    return -1;
}

static int cannot(const struct files *files, const char *what, const char *why, struct failure *failure) {
    char host[NODE_HOST_BYTES] = "";
    gethostname(host, sizeof host - 1);
    return failure_set(failure, "files", host, "%s cannot %s %.250s: %.150s", host, what, files->path, why);
}

static int file_failed(const struct files *files, const char *what, int code, struct failure *failure) {
    char said[MPI_MAX_ERROR_STRING + 1] = "";
    int length = 0;
    MPI_Error_string(code, said, &length);
    return cannot(files, what, said, failure);
}

/* The same name on all ranks, which nobody else has. */
static int name(const struct part *part, struct files *files, const char *directory,
                struct failure *failure) {
    char unique[NAME_BYTES] = "";
    if (part->rank == 0)
        launch_file_name(unique, sizeof unique, KIND);
    const int code = MPI_Bcast(unique, (int)sizeof unique, MPI_CHAR, 0, part->comm);
    if (code != MPI_SUCCESS)
        return mpi_failed(part->visit->link, code, failure);
    const int length = own(files)
                           ? snprintf(files->path, PATH_BYTES, "%s/%s.%d", directory, unique, part->rank)
                           : snprintf(files->path, PATH_BYTES, "%s/%s", directory, unique);
    return length < PATH_BYTES ? 0 : cannot(files, "name", "the name is too long", failure);
}

/* The ranks of this node, of those of a communicator. */
static int node_of(MPI_Comm comm, MPI_Group *node) {
    MPI_Comm here = MPI_COMM_NULL;
    int code = MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_group(here, node);
    return code == MPI_SUCCESS ? MPI_Comm_free(&here) : code;
}

/* Note the files of the other ranks of this node. */
static int note_others(const struct part *part, const struct files *files) {
    MPI_Group node = MPI_GROUP_NULL, all = MPI_GROUP_NULL;
    const int begin = (int)(strrchr(files->path, '.') - files->path); /* before the rank */
    int code = node_of(part->comm, &node);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_group(part->comm, &all);
    for (int rank = 0; rank < part->ranks && code == MPI_SUCCESS; rank++) {
        char path[PATH_BYTES];
        int there = MPI_UNDEFINED;
        code = MPI_Group_translate_ranks(all, 1, &rank, node, &there);
        snprintf(path, sizeof path, "%.*s.%d", begin, files->path, rank);
        if (there != MPI_UNDEFINED && rank != part->rank)
            launch_file_also(path);
    }
    if (node != MPI_GROUP_NULL)
        MPI_Group_free(&node);
    if (all != MPI_GROUP_NULL)
        MPI_Group_free(&all);
    return code;
}

/* Whichever rank is ended first removes what its node has: the launcher may kill the others at once then. */
static int note_files(const struct part *part, const struct files *files, struct failure *failure) {
    launch_file_begin(files->path);
    const int code = own(files) ? note_others(part, files) : MPI_SUCCESS;
    return code == MPI_SUCCESS ? 0 : mpi_failed(part->visit->link, code, failure);
}

/* Make an empty file. Not longer than the file system has room: a full one stops others, too. */
static int make(const struct part *part, const struct files *files, const char *directory,
                struct failure *failure) {
    const uint64_t bytes = files->pieces * (uint64_t)part->size * (own(files) ? 1 : (uint64_t)part->ranks);
    if (!makes_the_file(part))
        return 0;
    /* What has the name is of a launch long ago with this process number, or a link that somebody put there.
     */
    unlink(files->path);
    const int fd = open(files->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, MODE);
    if (fd < 0) {
        launch_file_forget();
        return cannot(files, "make",
                      errno == ENOENT ? "there is no such directory, which every node must have"
                                      : strerror(errno),
                      failure);
    }
    close(fd);
    const uint64_t room = filesystem_free(directory);
    return room >= 2 * bytes ? 0 : cannot(files, "fill", "there is not twice as much room", failure);
}

static int see(const struct files *files, struct failure *failure) {
    if (access(files->path, R_OK | W_OK) == 0)
        return 0;
    return cannot(files, "find", "the first rank has made it; name a directory that all nodes share",
                  failure);
}

static int open_file(const struct part *part, struct files *files, int mode, struct failure *failure) {
    const MPI_Comm comm = own(files) ? MPI_COMM_SELF : part->comm;
    const int code = MPI_File_open(comm, files->path, mode, MPI_INFO_NULL, &files->file);
    return code == MPI_SUCCESS ? 0 : file_failed(files, "open", code, failure);
}

static int close_file(struct files *files, struct failure *failure) {
    const int code = MPI_File_close(&files->file);
    return code == MPI_SUCCESS ? 0 : file_failed(files, "close", code, failure);
}

/* Have every piece in the file that is to be read, and on the disk. */
static int write_all(const struct part *part, struct files *files, struct failure *failure) {
    int code = MPI_SUCCESS;
    for (uint64_t piece = 0; piece < files->pieces && code == MPI_SUCCESS; piece++) {
        part_put(part, part->out, part->rank, (int)piece);
        code = MPI_File_write_at(files->file, place_of(part, piece, part->rank), part->out, part->size,
                                 MPI_BYTE, MPI_STATUS_IGNORE);
        watchdog_beat();
    }
    /* All ranks take part in it, whatever their own calls have given. */
    const int synced = MPI_File_sync(files->file);
    if (code == MPI_SUCCESS)
        code = synced;
    return code == MPI_SUCCESS ? 0 : file_failed(files, "write", code, failure);
}

static int prepare(const struct part *part, struct files *files, struct failure *failure) {
    int result = all_or_none(part, open_file(part, files, MPI_MODE_RDWR, failure), failure);
    if (result == 0 && files->kind->reads) {
        result = write_all(part, files, failure);
        /* What another node has written is seen by whom opens the file afterwards. */
        if (close_file(files, failure) != 0)
            result = -1;
        result = all_or_none(part, result, failure);
        if (result == 0)
            result = all_or_none(part, open_file(part, files, MPI_MODE_RDONLY, failure), failure);
    }
    if (result == 0 && resident_open(&files->resident, files->path) != 0)
        result = cannot(files, "open", strerror(errno), failure);
    return all_or_none(part, result, failure);
}

static uint64_t pieces(const struct part *part) {
    const uint64_t fit = AREA_BYTES / (uint64_t)part->size;
    return fit < PIECES_MOST ? (fit > 0 ? fit : 1) : PIECES_MOST;
}

/* Remove what a rank has made. Where all have failed, none leaves before that: the first to leave ends the
 * others. */
static int remove_files(const struct part *part, const struct files *files, int result,
                        struct failure *failure) {
    if (launch_file_end() != 0 && result == 0)
        return cannot(files, "remove", strerror(errno), failure);
    if (result != 0 && strcmp(failure->code, "files") == 0) /* and MPI works */
        MPI_Barrier(part->comm);
    return result;
}

int files_open(struct part *part, const struct file_kind *kind, struct failure *failure) {
    const struct mpi_link *link = part->visit->link;
    struct files *files = calloc(1, sizeof *files);
    if (files == NULL)
        return failure_set(failure, "system", "", "no memory for a visit");
    *files = (struct files){.kind = kind,
                            .file = MPI_FILE_NULL,
                            .resident = {.fd = -1},
                            .pieces = pieces(part),
                            .code = MPI_SUCCESS};
    part->state = files;
    if (part->visit->number == 0)
        launch_files_tidy(link->directory, KIND);
    int result = all_or_none(part, name(part, files, link->directory, failure), failure);
    if (result == 0)
        result = note_files(part, files, failure);
    if (result == 0)
        result = make(part, files, link->directory, failure);
    result = all_or_none(part, result, failure);
    if (result == 0)
        result = all_or_none(part, see(files, failure), failure);
    if (result == 0)
        result = prepare(part, files, failure);
    return result == 0 ? 0 : remove_files(part, files, result, failure);
}

int files_before(const struct part *part) {
    struct files *files = part->state;
    const uint64_t piece = piece_of(part);
    if (!files->kind->reads) {
        part_put(part, part->out, part->rank, (int)piece);
        return MPI_SUCCESS;
    }
    part->in[0] = (unsigned char)~part->in[0]; /* the piece of an earlier iteration is none of this one */
    if (files->kind->to_the_disk) {
        /* Another rank of this node may still read, and the kernel ahead of it. */
        const int code = MPI_Barrier(part->comm);
        if (code != MPI_SUCCESS)
            return code;
        resident_drop(&files->resident);
    }
    resident_look(&files->resident, (uint64_t)place_of(part, piece, read_from(part)), (size_t)part->size);
    return MPI_SUCCESS;
}

static int read_piece(const struct part *part, MPI_Status *status) {
    const struct files *files = part->state;
    const MPI_Offset place = place_of(part, piece_of(part), read_from(part));
    if (files->kind->sharing == FILES_COLLECTIVE)
        return MPI_File_read_at_all(files->file, place, part->in, part->size, MPI_BYTE, status);
    return MPI_File_read_at(files->file, place, part->in, part->size, MPI_BYTE, status);
}

static int write_piece(const struct part *part, MPI_Status *status) {
    const struct files *files = part->state;
    const MPI_Offset place = place_of(part, piece_of(part), part->rank);
    int code = MPI_SUCCESS;
    if (files->kind->sharing == FILES_COLLECTIVE)
        code = MPI_File_write_at_all(files->file, place, part->out, part->size, MPI_BYTE, status);
    else
        code = MPI_File_write_at(files->file, place, part->out, part->size, MPI_BYTE, status);
    /* All ranks take part in it, whatever their own call has given. */
    const int synced = files->kind->to_the_disk ? MPI_File_sync(files->file) : MPI_SUCCESS;
    return code == MPI_SUCCESS ? synced : code;
}

int files_call(const struct part *part) {
    struct files *files = part->state;
    MPI_Status status;
    int bytes = 0;
    int code = files->kind->reads ? read_piece(part, &status) : write_piece(part, &status);
    if (code == MPI_SUCCESS)
        code = MPI_Get_count(&status, MPI_BYTE, &bytes);
    if (files->code == MPI_SUCCESS)
        files->code = code;
    files->wrong = files->wrong || bytes != part->size;
    return MPI_SUCCESS;
}

int files_after(const struct part *part) {
    struct files *files = part->state;
    const uint64_t piece = piece_of(part);
    if (files->kind->reads)
        files->wrong = files->wrong || !part_has(part, part->in, read_from(part), (int)piece);
    else
        resident_look(&files->resident, (uint64_t)place_of(part, piece, part->rank), (size_t)part->size);
    return MPI_SUCCESS;
}

/* Read what was written, by the kernel and not by the library that wrote it. */
static int read_back(const struct part *part, struct files *files, struct failure *failure) {
    const uint64_t written = part->iteration + 1 < files->pieces ? part->iteration + 1 : files->pieces;
    for (uint64_t piece = 0; piece < written; piece++) {
        const ssize_t count =
            pread(files->resident.fd, part->in, (size_t)part->size, (off_t)place_of(part, piece, part->rank));
        if (count < 0)
            return cannot(files, "read", strerror(errno), failure);
        files->wrong =
            files->wrong || count != part->size || !part_has(part, part->in, part->rank, (int)piece);
        watchdog_beat();
    }
    return 0;
}

/* The share of all ranks' pages that were in memory. */
static int tell_memory(const struct part *part, const struct files *files, struct failure *failure) {
    uint64_t counts[] = {files->resident.pages, files->resident.in_memory};
    const int code = MPI_Allreduce(MPI_IN_PLACE, counts, 2, MPI_UINT64_T, MPI_SUM, part->comm);
    part->visit->in_memory = counts[0] == 0 ? (double)NAN : (double)counts[1] / (double)counts[0];
    return code == MPI_SUCCESS ? 0 : mpi_failed(part->visit->link, code, failure);
}

int files_close(struct part *part, struct failure *failure) {
    struct files *files = part->state;
    int result = files->code == MPI_SUCCESS
                     ? 0
                     : file_failed(files, files->kind->reads ? "read" : "write", files->code, failure);
    if (close_file(files, failure) != 0)
        result = -1;
    if (result == 0 && !files->kind->reads)
        result = read_back(part, files, failure);
    resident_close(&files->resident);
    result = remove_files(part, files, all_or_none(part, result, failure), failure);
    return result == 0 ? tell_memory(part, files, failure) : result;
}

bool files_right(const struct part *part) {
    struct files *files = part->state;
    const bool right = !files->wrong;
    free(files);
    return right;
}
