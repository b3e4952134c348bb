#include "emulate/mail.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/launch_file.h"
#include "core/node.h"

enum { LINE = 64, PATH_BYTES = 1024, NAME_BYTES = 128, MODE = 0600 };

static const char KIND[] = "wulf-emulate";

/* Where a rank receives messages of one sender with one tag on one communicator: `slots` of them wait in it.
 * The same list is on all ranks, in the same order. */
struct box {
    uint64_t team; /* what its members come to */
    int32_t owner, source, tag, unused;
    uint64_t bytes; /* of the largest message */
    uint64_t place; /* in the owner's memory, or in the file */
};

/* In memory: how many were put in and taken out. Each side writes one of them. */
struct counters {
    _Atomic uint64_t put;
    char apart[LINE - sizeof(uint64_t)];
    _Atomic uint64_t taken;
    char behind[LINE - sizeof(uint64_t)];
};

struct mail {
    enum method method;
    struct box *boxes;
    size_t count;
    uint64_t slots;
    uint64_t *done; /* by box: messages that this rank has put in, or taken out */
    /* Memory. */
    MPI_Comm node;
    MPI_Win window;
    int *on_node; /* by rank of the world: rank of the node; MPI_UNDEFINED for one elsewhere */
    /* File. */
    MPI_File file;
    MPI_Comm told, taken; /* what is there, and what has room again */
    char path[PATH_BYTES];
};

int mail_method(const char *name) {
    static const char *const names[] = {"messages", "memory", "file"};
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    return -1;
}

/* --- boxes ---------------------------------------------------------------------------------------------- */

/* FNV-1a of the members: numbers of communicators differ from rank to rank. */
static uint64_t team_key(const struct team *team) {
    uint64_t key = UINT64_C(14695981039346656037);
    for (int i = 0; i < team->ranks; i++)
        key = (key ^ (uint64_t)(uint32_t)team->members[i]) * UINT64_C(1099511628211);
    return key;
}

static int compare(const void *one, const void *other) {
    const struct box *a = one;
    const struct box *b = other;
    const int64_t differences[] = {a->team < b->team ? -1 : a->team > b->team, a->owner - (int64_t)b->owner,
                                   a->source - (int64_t)b->source, a->tag - (int64_t)b->tag};
    for (size_t i = 0; i < sizeof differences / sizeof *differences; i++)
        if (differences[i] != 0)
            return differences[i] < 0 ? -1 : 1;
    return 0;
}

static uint64_t slot_bytes(const struct box *box) {
    return (box->bytes + sizeof(uint64_t) + LINE - 1) / LINE * LINE;
}

static uint64_t box_bytes(const struct mail *mail, const struct box *box) {
    return sizeof(struct counters) + mail->slots * slot_bytes(box);
}

static uint64_t slot_place(const struct box *box, uint64_t number, uint64_t slots) {
    return box->place + sizeof(struct counters) + number % slots * slot_bytes(box);
}

static bool receives(const struct entry *entry) {
    return entry->record.kind == TRACE_RECV || entry->record.kind == TRACE_IRECV ||
           entry->record.kind == TRACE_RECV_PART;
}

/* Who comes first, or nothing but MPI can say: that takes messages. */
static bool only_messages(const struct entry *entry) {
    return entry->record.kind == TRACE_SEND_INIT || entry->record.kind == TRACE_RECV_INIT ||
           entry_is_mark(entry, TRACE_MARK_SERVE) || entry_is_mark(entry, TRACE_MARK_FARM);
}

/* Boxes that come one after the other and are alike become one that holds the largest message. */
static size_t merged(struct box *boxes, size_t count) {
    size_t kept = 0;
    qsort(boxes, count, sizeof *boxes, compare);
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || compare(&boxes[kept - 1], &boxes[i]) != 0)
            boxes[kept++] = boxes[i];
        else if (boxes[i].bytes > boxes[kept - 1].bytes)
            boxes[kept - 1].bytes = boxes[i].bytes;
    }
    return kept;
}

/* The boxes of this rank, from all that it receives; NULL with the failure. */
static struct box *own_boxes(struct emulation *emulation, size_t *count) {
    struct entry entry;
    size_t room = 16;
    struct box *boxes = malloc(room * sizeof *boxes);
    *count = 0;
    for (uint64_t place = 0; boxes != NULL;) {
        if (stream_next(&emulation->stream, &place, &entry) != STREAM_ENTRY)
            return boxes;
        if (only_messages(&entry)) {
            emulation_failed(emulation, "clients, farms and persistent requests go by messages alone");
            break;
        }
        if (!receives(&entry))
            continue;
        if (*count == room) {
            *count = merged(boxes, *count);
            room *= *count > room / 2 ? 2 : 1;
            struct box *more = realloc(boxes, room * sizeof *boxes);
            if (more == NULL)
                break;
            boxes = more;
        }
        const struct team *team = team_at(&emulation->teams, entry.record.comm);
        boxes[(*count)++] = (struct box){.team = team_key(team),
                                         .owner = emulation->rank,
                                         .source = team->members[entry.record.peer],
                                         .tag = entry.record.tag,
                                         .bytes = entry.record.bytes};
    }
    emulation_failed(emulation, "no memory for boxes");
    free(boxes);
    return NULL;
}

/* The boxes of all ranks, on all ranks. */
static int share_boxes(struct mail *mail, const struct box *own, size_t count, int ranks) {
    int bytes = (int)(count * sizeof *own);
    int *sizes = calloc((size_t)ranks, sizeof *sizes);
    int *places = calloc((size_t)ranks, sizeof *places);
    int code = sizes == NULL || places == NULL ? MPI_ERR_NO_MEM : MPI_SUCCESS;
    if (code == MPI_SUCCESS)
        code = MPI_Allgather(&bytes, 1, MPI_INT, sizes, 1, MPI_INT, MPI_COMM_WORLD);
    int all = 0;
    for (int rank = 0; code == MPI_SUCCESS && rank < ranks; rank++) {
        places[rank] = all;
        all += sizes[rank];
    }
    mail->boxes = malloc((size_t)all + 1);
    mail->count = (size_t)all / sizeof *own;
    mail->done = calloc(mail->count + 1, sizeof *mail->done);
    if (mail->boxes == NULL || mail->done == NULL)
        code = MPI_ERR_NO_MEM;
    if (code == MPI_SUCCESS)
        code = MPI_Allgatherv(own, bytes, MPI_BYTE, mail->boxes, sizes, places, MPI_BYTE, MPI_COMM_WORLD);
    qsort(mail->boxes, mail->count, sizeof *mail->boxes, compare);
    free(sizes);
    free(places);
    return code;
}

/* Where each is: in memory in its owner's, in the file behind all others. Returns the bytes of `owner`, or of
 * all where that is -1. */
static uint64_t place_boxes(const struct mail *mail, uint64_t *ends, int owner) {
    for (size_t i = 0; i < mail->count; i++) {
        struct box *box = &mail->boxes[i];
        uint64_t *end = &ends[owner < 0 ? 0 : box->owner];
        box->place = *end;
        *end += box_bytes(mail, box);
    }
    return ends[owner < 0 ? 0 : owner];
}

static struct box *find(const struct mail *mail, const struct box *like) {
    return bsearch(like, mail->boxes, mail->count, sizeof *mail->boxes, compare);
}

/* --- memory ----------------------------------------------------------------------------------------------
 */

static int open_memory(struct emulation *emulation, struct mail *mail, uint64_t bytes) {
    MPI_Group world, node;
    void *own = NULL;
    int *all = calloc((size_t)emulation->ranks, sizeof *all);
    mail->on_node = calloc((size_t)emulation->ranks, sizeof *mail->on_node);
    if (all == NULL || mail->on_node == NULL)
        return MPI_ERR_NO_MEM;
    for (int rank = 0; rank < emulation->ranks; rank++)
        all[rank] = rank;
    int code = MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, emulation->rank, MPI_INFO_NULL,
                                   &mail->node);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_group(MPI_COMM_WORLD, &world);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_group(mail->node, &node);
    if (code == MPI_SUCCESS)
        code = MPI_Group_translate_ranks(world, emulation->ranks, all, node, mail->on_node);
    free(all);
    if (code == MPI_SUCCESS)
        code = MPI_Win_allocate_shared((MPI_Aint)(bytes + LINE), 1, MPI_INFO_NULL, mail->node, &own,
                                       &mail->window);
    if (code == MPI_SUCCESS) {
        memset(own, 0, bytes + LINE);
        code = MPI_Barrier(mail->node);
    }
    return code;
}

static unsigned char *memory_of(const struct mail *mail, const struct box *box) {
    MPI_Aint bytes = 0;
    int unit = 0;
    unsigned char *base = NULL;
    MPI_Win_shared_query(mail->window, mail->on_node[box->owner], &bytes, &unit, (void *)&base);
    const uintptr_t line = ((uintptr_t)base + LINE - 1) / LINE * LINE;
    return base + (line - (uintptr_t)base);
}

static int put_in_memory(struct mail *mail, const struct box *box, const unsigned char *out, uint64_t bytes) {
    unsigned char *memory = memory_of(mail, box);
    struct counters *counters = (struct counters *)(void *)(memory + box->place);
    const uint64_t number = mail->done[box - mail->boxes]++;
    while (number - atomic_load_explicit(&counters->taken, memory_order_acquire) >= mail->slots)
        sched_yield();
    unsigned char *slot = memory + slot_place(box, number, mail->slots);
    memcpy(slot, &bytes, sizeof bytes);
    memcpy(slot + sizeof bytes, out, bytes);
    atomic_store_explicit(&counters->put, number + 1, memory_order_release);
    return MPI_SUCCESS;
}

static int take_from_memory(struct mail *mail, const struct box *box, unsigned char *in, uint64_t room,
                            uint64_t *got) {
    unsigned char *memory = memory_of(mail, box);
    struct counters *counters = (struct counters *)(void *)(memory + box->place);
    const uint64_t number = mail->done[box - mail->boxes]++;
    while (atomic_load_explicit(&counters->put, memory_order_acquire) <= number)
        sched_yield();
    const unsigned char *slot = memory + slot_place(box, number, mail->slots);
    memcpy(got, slot, sizeof *got);
    memcpy(in, slot + sizeof *got, *got < room ? *got : room);
    atomic_store_explicit(&counters->taken, number + 1, memory_order_release);
    return *got <= room ? MPI_SUCCESS : MPI_ERR_TRUNCATE;
}

/* --- a file ----------------------------------------------------------------------------------------------
 */

/* Whether all nodes see the file; otherwise it is removed before any rank leaves, as the first one ends the
 * others. */
static int all_see(struct emulation *emulation, const struct mail *mail) {
    char host[NODE_HOST_BYTES] = "";
    int first = access(mail->path, R_OK | W_OK) == 0 ? emulation->ranks : emulation->rank;
    int code = MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (code != MPI_SUCCESS || first == emulation->ranks)
        return code;
    gethostname(host, sizeof host - 1);
    code = MPI_Bcast(host, sizeof host, MPI_CHAR, first, MPI_COMM_WORLD);
    launch_file_end();
    if (code == MPI_SUCCESS)
        code = MPI_Barrier(MPI_COMM_WORLD);
    if (code != MPI_SUCCESS)
        return code;
    return emulation_failed(emulation, "%s does not see %s: --dir must be one that all nodes share", host,
                            mail->path);
}

static int open_file(struct emulation *emulation, struct mail *mail, const char *directory) {
    char name[NAME_BYTES] = "";
    int *limit = NULL;
    int is_set = 0;
    if (emulation->rank == 0) {
        launch_files_tidy(directory, KIND);
        launch_file_name(name, sizeof name, KIND);
    }
    int code = MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (snprintf(mail->path, sizeof mail->path, "%s/%s", directory, name) >= (int)sizeof mail->path)
        return emulation_failed(emulation, "the name of --dir is too long");
    if (code == MPI_SUCCESS)
        launch_file_begin(mail->path); /* whichever rank cannot go on removes it: it ends the others */
    if (code == MPI_SUCCESS && emulation->rank == 0) {
        const int fd = open(mail->path, O_CREAT | O_RDWR | O_EXCL | O_CLOEXEC, MODE);
        if (fd < 0) {
            launch_file_forget();
            return emulation_failed(emulation, "cannot make %s: name another directory with --dir",
                                    mail->path);
        }
        close(fd);
    }
    if (code == MPI_SUCCESS)
        code = MPI_Barrier(MPI_COMM_WORLD);
    if (code == MPI_SUCCESS)
        code = all_see(emulation, mail);
    if (code != MPI_SUCCESS)
        return code;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, (void *)&limit, &is_set);
    if (is_set && mail->count > (size_t)*limit)
        return emulation_failed(emulation, "more boxes (%zu) than MPI has tags", mail->count);
    /* Each for itself: MPI_File_sync would wait for all of a common one. */
    if (code == MPI_SUCCESS)
        code = MPI_File_open(MPI_COMM_SELF, mail->path, MPI_MODE_RDWR, MPI_INFO_NULL, &mail->file);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_dup(MPI_COMM_WORLD, &mail->told);
    return code == MPI_SUCCESS ? MPI_Comm_dup(MPI_COMM_WORLD, &mail->taken) : code;
}

/* The data goes by the file; that it is there, and how much, is said by a message: write, sync, tell; hear,
 * sync, read (MPI-3.1, section 13.6.1). */
static int put_in_file(struct mail *mail, const struct box *box, const unsigned char *out, uint64_t bytes) {
    const int tag = (int)(box - mail->boxes);
    const uint64_t number = mail->done[tag]++;
    const MPI_Offset place = (MPI_Offset)slot_place(box, number, mail->slots);
    int code = MPI_SUCCESS;
    if (number >= mail->slots)
        code = MPI_Recv(NULL, 0, MPI_BYTE, box->owner, tag, mail->taken, MPI_STATUS_IGNORE);
    if (code == MPI_SUCCESS)
        code = MPI_File_write_at(mail->file, place, out, (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE);
    if (code == MPI_SUCCESS)
        code = MPI_File_sync(mail->file);
    return code == MPI_SUCCESS ? MPI_Send(&bytes, 1, MPI_UINT64_T, box->owner, tag, mail->told) : code;
}

static int take_from_file(struct mail *mail, const struct box *box, unsigned char *in, uint64_t room,
                          uint64_t *got) {
    const int tag = (int)(box - mail->boxes);
    const MPI_Offset place = (MPI_Offset)slot_place(box, mail->done[tag]++, mail->slots);
    int code = MPI_Recv(got, 1, MPI_UINT64_T, box->source, tag, mail->told, MPI_STATUS_IGNORE);
    if (code == MPI_SUCCESS)
        code = MPI_File_sync(mail->file);
    if (code == MPI_SUCCESS)
        code = MPI_File_read_at(mail->file, place, in, (int)(*got < room ? *got : room), MPI_BYTE,
                                MPI_STATUS_IGNORE);
    if (code == MPI_SUCCESS)
        code = MPI_Send(NULL, 0, MPI_BYTE, box->source, tag, mail->taken);
    return code == MPI_SUCCESS && *got > room ? MPI_ERR_TRUNCATE : code;
}

/* Hear of the last ones that were taken. */
static int close_file(const struct emulation *emulation, struct mail *mail) {
    int code = MPI_SUCCESS;
    for (size_t i = 0; i < mail->count && code == MPI_SUCCESS; i++) {
        const uint64_t open = mail->done[i] < mail->slots ? mail->done[i] : mail->slots;
        for (uint64_t n = 0; mail->boxes[i].source == emulation->rank && n < open && code == MPI_SUCCESS; n++)
            code = MPI_Recv(NULL, 0, MPI_BYTE, mail->boxes[i].owner, (int)i, mail->taken, MPI_STATUS_IGNORE);
    }
    if (code == MPI_SUCCESS)
        code = MPI_File_close(&mail->file);
    if (code == MPI_SUCCESS)
        code = MPI_Barrier(MPI_COMM_WORLD);
    if (emulation->rank == 0)
        launch_file_end();
    return code;
}

/* --- all of them ------------------------------------------------------------------------------------------
 */

static int open_all(struct emulation *emulation, struct mail *mail, const char *directory) {
    size_t count = 0;
    struct box *own = own_boxes(emulation, &count);
    int wrong = own == NULL;
    /* Rank 0 is the one that says it. */
    int code = MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
    if (wrong) {
        free(own);
        return emulation_failed(emulation, "clients, farms and persistent requests go by messages alone");
    }
    count = merged(own, count);
    /* As many may be begun before one is waited for. */
    mail->slots = emulation->survey.requests + 1;
    if (code == MPI_SUCCESS)
        code = MPI_Allreduce(MPI_IN_PLACE, &mail->slots, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    if (code == MPI_SUCCESS)
        code = share_boxes(mail, own, count, emulation->ranks);
    free(own);
    uint64_t *ends = calloc((size_t)emulation->ranks, sizeof *ends);
    if (ends == NULL)
        return MPI_ERR_NO_MEM;
    const uint64_t bytes = place_boxes(mail, ends, mail->method == METHOD_FILE ? -1 : emulation->rank);
    free(ends);
    if (code != MPI_SUCCESS)
        return code;
    return mail->method == METHOD_FILE ? open_file(emulation, mail, directory)
                                       : open_memory(emulation, mail, bytes);
}

int mail_open(struct emulation *emulation, enum method method, const char *directory) {
    if (method == METHOD_MESSAGES)
        return 0;
    emulation->mail = calloc(1, sizeof *emulation->mail);
    if (emulation->mail == NULL)
        return failure_set(emulation->failure, "system", "", "no memory");
    emulation->mail->method = method;
    if (open_all(emulation, emulation->mail, directory) == MPI_SUCCESS)
        return 0;
    return failure_set(emulation->failure, "mpi", "", "rank %d cannot make ready the %s that messages go by",
                       emulation->rank, method == METHOD_FILE ? "file" : "memory");
}

int mail_close(struct emulation *emulation) {
    struct mail *mail = emulation->mail;
    if (mail == NULL)
        return 0;
    const int code = mail->method == METHOD_FILE ? close_file(emulation, mail) : MPI_Win_free(&mail->window);
    free(mail->boxes);
    free(mail->done);
    free(mail->on_node);
    free(mail);
    emulation->mail = NULL;
    return code == MPI_SUCCESS
               ? 0
               : failure_set(emulation->failure, "mpi", "", "what messages went by cannot be closed");
}

bool mail_carries(const struct emulation *emulation, const struct team *team, int peer) {
    const struct mail *mail = emulation->mail;
    return mail != NULL &&
           (mail->method == METHOD_FILE || mail->on_node[team->members[peer]] != MPI_UNDEFINED);
}

int mail_send(struct emulation *emulation, const struct trace_record *record) {
    struct mail *mail = emulation->mail;
    const struct team *team = team_at(&emulation->teams, record->comm);
    const struct box like = {.team = team_key(team),
                             .owner = team->members[record->peer],
                             .source = emulation->rank,
                             .tag = record->tag};
    const struct box *box = find(mail, &like);
    if (box == NULL || box->bytes < record->bytes)
        return emulation_failed(emulation, "a message that nobody receives");
    return mail->method == METHOD_FILE ? put_in_file(mail, box, emulation->out, record->bytes)
                                       : put_in_memory(mail, box, emulation->out, record->bytes);
}

int mail_receive(struct emulation *emulation, const struct team *team, int source, int tag, unsigned char *in,
                 uint64_t room, uint64_t *got) {
    struct mail *mail = emulation->mail;
    const struct box like = {
        .team = team_key(team), .owner = emulation->rank, .source = team->members[source], .tag = tag};
    const struct box *box = find(mail, &like);
    if (box == NULL)
        return emulation_failed(emulation, "a message that nobody receives");
    return mail->method == METHOD_FILE ? take_from_file(mail, box, in, room, got)
                                       : take_from_memory(mail, box, in, room, got);
}
