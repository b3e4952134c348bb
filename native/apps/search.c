/* wulf-search: sequences are sought in a database, as mpiBLAST does it: a master gives pieces of the database
 * out, a worker aligns all queries with every sequence of its piece (Smith and Waterman 1981, with Gotoh's
 * gaps 1982) and says the best of each, the master keeps the best of all.
 *
 * The database is in a file, in FASTA: read piece by piece by MPI-IO, or whole by every rank before (its
 * node's own copy). Without one it is made where it is needed. Queries that are made have the alignment
 * planted that must be found. */
#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/account.h"
#include "core/clock.h"
#include "core/mpi/end.h"
#include "core/rng.h"

/* What an alignment counts: of bases that are alike, that are not, of a gap's begin and of each of its bases.
 */
enum { MATCH = 2, MISMATCH = -3, GAP_OPEN = -5, GAP_MORE = -2 };
enum {
    NAME_BYTES = 32,
    QUERIES_MOST = 1024,
    QUERY_MOST = 4096,
    SEQUENCE_MOST = 1 << 16,
    LENGTH_LEAST = 200,
    LENGTH_MOST = 1800,
    MADE_QUERY = 120,
    LINE_BASES = 70,
    PER_PIECE = 16, /* sequences, where they are made */
    TAG_PIECE = 1,
    TAG_FOUND,
    TAG_END
};

enum reading { READ_MADE, READ_MPI_IO, READ_OWN };

struct query {
    char name[NAME_BYTES];
    char bases[QUERY_MOST + 1];
    int length;
    char known[NAME_BYTES]; /* the sequence that must be found; empty where nobody knows */
    int32_t score;          /* … and how well it fits */
};

struct hit {
    char name[NAME_BYTES];
    int32_t score;
};

struct search {
    struct query *queries;
    int count;
    uint64_t sequences, seed; /* of what is made */
    const char *database, *command;
    uint64_t piece_bytes, bytes, pieces;
    enum reading reading;
    MPI_File file;
    char *whole;  /* the node's own copy */
    char *text;   /* of a piece */
    int32_t *row; /* of an alignment */
    struct account account;
    uint64_t read_ns;
};

/* --- what is made -----------------------------------------------------------------------------------------
 */

static char base_at(uint64_t seed, uint64_t sequence, uint64_t place) {
    return "ACGT"[rng_mix(rng_mix(seed + sequence) + place) >> 62];
}

static int length_of(uint64_t seed, uint64_t sequence) {
    return LENGTH_LEAST + (int)(rng_mix(seed ^ (sequence + 1) * RNG_STEP) % (LENGTH_MOST - LENGTH_LEAST));
}

/* FASTA of a made sequence; returns its bytes. */
static size_t make_sequence(uint64_t seed, uint64_t sequence, char *text) {
    const int length = length_of(seed, sequence);
    int at = sprintf(text, ">s%" PRIu64 "\n", sequence);
    for (int i = 0; i < length; i++) {
        text[at++] = base_at(seed, sequence, (uint64_t)i);
        if (i % LINE_BASES == LINE_BASES - 1 || i == length - 1)
            text[at++] = '\n';
    }
    text[at] = '\0';
    return (size_t)at;
}

static char another(char base) { return base == 'A' ? 'C' : base == 'C' ? 'G' : base == 'G' ? 'T' : 'A'; }

/* Part of a sequence, changed: queries in turn are exact, have two other bases, lack three bases. What the
 * best alignment counts is known, as no change is near an end. */
static void plant(struct query *query, int number, const struct search *search) {
    const uint64_t sequence = rng_mix(search->seed + 77 + (uint64_t)number) % search->sequences;
    const uint64_t spare = (uint64_t)length_of(search->seed, sequence) - MADE_QUERY;
    const uint64_t begin = rng_mix(search->seed + 991 + (uint64_t)number) % (spare + 1);
    const int lacking = number % 3 == 2 ? 3 : 0;
    int length = 0;
    for (int i = 0; i < MADE_QUERY; i++)
        if (i < MADE_QUERY / 2 || i >= MADE_QUERY / 2 + lacking)
            query->bases[length++] = base_at(search->seed, sequence, begin + (uint64_t)i);
    query->length = length;
    query->score = MATCH * length;
    if (lacking > 0)
        query->score += GAP_OPEN + lacking * GAP_MORE;
    for (int place = 0; number % 3 == 1 && place < 2; place++) {
        char *base = &query->bases[MADE_QUERY / 3 * (place + 1)];
        *base = another(*base);
        query->score += MISMATCH - MATCH;
    }
    snprintf(query->name, sizeof query->name, "q%d", number);
    snprintf(query->known, sizeof query->known, "s%" PRIu64, sequence);
}

static int write_file(const char *path, const char *what, const struct search *search, bool queries) {
    FILE *file = fopen(path, "w");
    char *text = malloc(SEQUENCE_MOST);
    bool good = file != NULL && text != NULL;
    for (uint64_t i = 0; good && !queries && i < search->sequences; i++)
        good = fwrite(text, 1, make_sequence(search->seed, i, text), file) > 0;
    for (int i = 0; good && queries && i < search->count; i++)
        good = fprintf(file, ">%s known=%s score=%d\n%s\n", search->queries[i].name, search->queries[i].known,
                       search->queries[i].score, search->queries[i].bases) > 0;
    if (file != NULL)
        good = fclose(file) == 0 && good;
    free(text);
    if (!good)
        fprintf(stderr, "wulf-search: cannot write the %s %s\n", what, path);
    return good ? EXIT_RIGHT : EXIT_NOT_RIGHT;
}

/* --- alignments -------------------------------------------------------------------------------------------
 */

static int32_t larger(int32_t a, int32_t b) { return a > b ? a : b; }

/* The best local alignment of a query with a sequence. The row has two numbers for each base of the query. */
static int32_t align(const struct query *query, const char *bases, int length, int32_t *row) {
    int32_t best = 0;
    int32_t *const down = row + query->length + 1;
    for (int j = 0; j <= query->length; j++) {
        row[j] = 0;
        down[j] = INT_MIN / 2;
    }
    for (int i = 0; i < length; i++) {
        int32_t corner = 0;
        int32_t left = 0;
        int32_t across = INT_MIN / 2;
        for (int j = 1; j <= query->length; j++) {
            down[j] = larger(row[j] + GAP_OPEN, down[j]) + GAP_MORE;
            across = larger(left + GAP_OPEN, across) + GAP_MORE;
            const int32_t along = corner + (query->bases[j - 1] == bases[i] ? MATCH : MISMATCH);
            const int32_t value = larger(larger(0, along), larger(down[j], across));
            corner = row[j];
            left = row[j] = value;
            best = larger(best, value);
        }
    }
    return best;
}

/* Of two that count the same the one whose name comes first: the order of the pieces does not matter. */
static void keep(struct hit *best, const char *name, int32_t score) {
    if (score < best->score || score <= 0 || (score == best->score && strcmp(name, best->name) >= 0))
        return;
    best->score = score;
    snprintf(best->name, sizeof best->name, "%s", name);
}

/* The first word behind the > of a FASTA record. */
static void name_of(const char *line, char *name) {
    size_t length = strcspn(line + 1, " \t\r\n");
    length = length < NAME_BYTES ? length : NAME_BYTES - 1;
    memcpy(name, line + 1, length);
    name[length] = '\0';
}

/* All queries with one sequence: its record begins at `text`; returns where the next one does. */
static char *align_all(const struct search *search, char *text, struct hit *hits) {
    char name[NAME_BYTES];
    name_of(text, name);
    char *from = strchr(text, '\n');
    char *const end = from == NULL ? NULL : strstr(from, "\n>");
    char *const stop = end == NULL ? text + strlen(text) : end + 1;
    int length = 0;
    char *bases = from == NULL ? stop : from + 1;
    for (from = bases; from < stop; from++)
        if (isalpha((unsigned char)*from))
            bases[length++] = (char)toupper((unsigned char)*from);
    for (int i = 0; i < search->count; i++)
        keep(&hits[i], name, align(&search->queries[i], bases, length, search->row));
    return stop;
}

/* --- pieces of the database --------------------------------------------------------------------------------
 */

/* Bytes from a place on, as many as there are; -1 when they cannot be read. */
static int64_t read_at(struct search *search, uint64_t begin, uint64_t bytes) {
    const uint64_t begin_ns = clock_now_ns();
    const uint64_t size = begin + bytes <= search->bytes ? bytes : search->bytes - begin;
    MPI_Status status;
    int count = (int)size;
    if (search->reading == READ_OWN)
        memcpy(search->text, search->whole + begin, size);
    else if (MPI_File_read_at(search->file, (MPI_Offset)begin, search->text, (int)size, MPI_BYTE, &status) !=
                 MPI_SUCCESS ||
             MPI_Get_count(&status, MPI_BYTE, &count) != MPI_SUCCESS)
        return -1;
    search->read_ns += clock_now_ns() - begin_ns;
    search->text[count] = '\0';
    return count;
}

/* A piece has the sequences that begin in it, and these whole: up to the first one behind it. Returns where
 * they begin, or NULL with what is wrong said. */
static char *of_file(struct search *search, uint64_t piece) {
    const uint64_t begin = piece * search->piece_bytes;
    const uint64_t from = begin > 0 ? begin - 1 : 0; /* whether a line begins there */
    const int64_t got = read_at(search, from, begin - from + search->piece_bytes + SEQUENCE_MOST);
    if (got < 0) {
        fprintf(stderr, "wulf-search: %s cannot be read at byte %" PRIu64 "\n", search->database, from);
        return NULL;
    }
    char *first = begin > 0 ? strstr(search->text, "\n>") : search->text;
    if (begin > 0 && first != NULL)
        first++;
    const uint64_t behind = begin - from + search->piece_bytes; /* of the text, where the next piece begins */
    if (first == NULL || (uint64_t)(first - search->text) >= behind)
        return search->text + got; /* nothing begins in it */
    if ((uint64_t)got <= behind)
        return first;
    char *next = strstr(search->text + behind - 1, "\n>");
    if (next != NULL)
        next[1] = '\0';
    else if (from + (uint64_t)got < search->bytes) {
        fprintf(stderr, "wulf-search: %s has a sequence of more than %d bytes\n", search->database,
                SEQUENCE_MOST);
        return NULL;
    }
    return first;
}

static char *of_seed(struct search *search, uint64_t piece) {
    char *at = search->text;
    for (uint64_t i = piece * PER_PIECE; i < (piece + 1) * PER_PIECE && i < search->sequences; i++)
        at += make_sequence(search->seed, i, at);
    return search->text;
}

/* What another program finds: lines of query, sequence and score. It is started by a shell that knows the
 * piece as $CHUNK and the queries as $QUERIES. */
static int by_command(const struct search *search, const char *text, struct hit *hits) {
    char chunk[] = "/tmp/wulf-search-XXXXXX";
    char line[512];
    const int fd = mkstemp(chunk);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0) {
        fprintf(stderr, "wulf-search: cannot write a piece to /tmp\n");
        return MPI_ERR_OTHER;
    }
    setenv("CHUNK", chunk, 1);
    FILE *found = popen(search->command, "r");
    while (found != NULL && fgets(line, sizeof line, found) != NULL) {
        char query[NAME_BYTES];
        char name[NAME_BYTES];
        double score = 0;
        if (sscanf(line, "%31s %31s %lf", query, name, &score) != 3)
            continue;
        for (int i = 0; i < search->count; i++)
            if (strcmp(search->queries[i].name, query) == 0)
                keep(&hits[i], name, (int32_t)score);
    }
    const int status = found == NULL ? -1 : pclose(found);
    unlink(chunk);
    if (status != 0)
        fprintf(stderr, "wulf-search: the command ended with %d: %s\n", status, search->command);
    return status == 0 ? MPI_SUCCESS : MPI_ERR_OTHER;
}

static int seek(struct search *search, uint64_t piece, struct hit *hits) {
    memset(hits, 0, (size_t)search->count * sizeof *hits);
    char *at = search->reading == READ_MADE ? of_seed(search, piece) : of_file(search, piece);
    if (at == NULL)
        return MPI_ERR_OTHER;
    if (*at == '\0')
        return MPI_SUCCESS;
    if (search->command != NULL)
        return by_command(search, at, hits);
    while (*at == '>')
        at = align_all(search, at, hits);
    return MPI_SUCCESS;
}

/* --- the farm ----------------------------------------------------------------------------------------------
 */

static void take(const struct search *search, const struct hit *from, struct hit *best) {
    for (int i = 0; i < search->count; i++)
        keep(&best[i], from[i].name, from[i].score);
}

static int give(struct search *search, uint64_t *next, int rank) {
    const int tag = *next < search->pieces ? TAG_PIECE : TAG_END;
    account_enter(&search->account);
    const int code = MPI_Send(next, 1, MPI_UINT64_T, rank, tag, MPI_COMM_WORLD);
    account_leave(&search->account);
    account_sent(&search->account, sizeof *next);
    *next += tag == TAG_PIECE;
    return code;
}

static int master(struct search *search, int ranks, struct hit *found, struct hit *best) {
    const int bytes = search->count * (int)sizeof *found;
    uint64_t next = 0;
    int code = MPI_SUCCESS;
    for (int rank = 1; rank < ranks && code == MPI_SUCCESS; rank++)
        code = give(search, &next, rank);
    for (uint64_t back = 0; back < search->pieces && code == MPI_SUCCESS; back++) {
        MPI_Status status;
        account_enter(&search->account);
        code = MPI_Recv(found, bytes, MPI_BYTE, MPI_ANY_SOURCE, TAG_FOUND, MPI_COMM_WORLD, &status);
        account_leave(&search->account);
        take(search, found, best);
        if (code == MPI_SUCCESS)
            code = give(search, &next, status.MPI_SOURCE);
    }
    return code;
}

static int worker(struct search *search, struct hit *found) {
    const int bytes = search->count * (int)sizeof *found;
    for (;;) {
        uint64_t piece = 0;
        MPI_Status status;
        account_enter(&search->account);
        int code = MPI_Recv(&piece, 1, MPI_UINT64_T, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        account_leave(&search->account);
        if (code != MPI_SUCCESS || status.MPI_TAG == TAG_END)
            return code;
        code = seek(search, piece, found);
        account_enter(&search->account);
        if (code == MPI_SUCCESS)
            code = MPI_Send(found, bytes, MPI_BYTE, 0, TAG_FOUND, MPI_COMM_WORLD);
        account_leave(&search->account);
        account_sent(&search->account, (uint64_t)bytes);
        if (code != MPI_SUCCESS)
            return code;
    }
}

static int alone(struct search *search, struct hit *found, struct hit *best) {
    for (uint64_t piece = 0; piece < search->pieces; piece++) {
        const int code = seek(search, piece, found);
        if (code != MPI_SUCCESS)
            return code;
        take(search, found, best);
    }
    return MPI_SUCCESS;
}

/* --- before and after
 * --------------------------------------------------------------------------------------- */

/* The queries of a file, on rank 0; what is known of one stands behind its name. */
static int read_queries(struct search *search, const char *path) {
    char line[QUERY_MOST + 2];
    FILE *file = fopen(path, "r");
    struct query *query = NULL;
    search->count = 0;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (line[0] == '>') {
            if (search->count == QUERIES_MOST)
                break;
            query = &search->queries[search->count++];
            name_of(line, query->name);
            const char *known = strstr(line, " known=");
            if (known == NULL || sscanf(known, " known=%31s score=%d", query->known, &query->score) != 2)
                query->known[0] = '\0';
            continue;
        }
        for (const char *at = line; query != NULL && *at != '\0' && query->length < QUERY_MOST; at++)
            if (isalpha((unsigned char)*at))
                query->bases[query->length++] = (char)toupper((unsigned char)*at);
    }
    if (file != NULL)
        fclose(file);
    if (search->count == 0)
        fprintf(stderr, "wulf-search: %s has no sequences in FASTA\n", path);
    return search->count > 0 ? MPI_SUCCESS : MPI_ERR_OTHER;
}

/* All of a file, which each node has. */
static int read_whole(struct search *search) {
    FILE *file = fopen(search->database, "r");
    search->whole = file == NULL ? NULL : malloc(search->bytes + 1);
    const bool good = search->whole != NULL && fread(search->whole, 1, search->bytes, file) == search->bytes;
    if (file != NULL)
        fclose(file);
    if (!good)
        fprintf(stderr, "wulf-search: %s is not there whole on every node\n", search->database);
    return good ? MPI_SUCCESS : MPI_ERR_OTHER;
}

static int open_database(struct search *search) {
    MPI_Offset size = 0;
    search->pieces = (search->sequences + PER_PIECE - 1) / PER_PIECE;
    search->text = malloc(search->reading == READ_MADE ? (size_t)PER_PIECE * 2 * LENGTH_MOST
                                                       : search->piece_bytes + SEQUENCE_MOST + 2);
    search->row = malloc(2 * (QUERY_MOST + 2) * sizeof *search->row);
    if (search->text == NULL || search->row == NULL)
        return MPI_ERR_NO_MEM;
    if (search->reading == READ_MADE)
        return MPI_SUCCESS;
    int code = MPI_File_open(search->reading == READ_OWN ? MPI_COMM_SELF : MPI_COMM_WORLD, search->database,
                             MPI_MODE_RDONLY, MPI_INFO_NULL, &search->file);
    if (code == MPI_SUCCESS)
        code = MPI_File_get_size(search->file, &size);
    if (code != MPI_SUCCESS)
        fprintf(stderr, "wulf-search: %s cannot be opened\n", search->database);
    search->bytes = (uint64_t)size;
    search->pieces = (search->bytes + search->piece_bytes - 1) / search->piece_bytes;
    return code == MPI_SUCCESS && search->reading == READ_OWN ? read_whole(search) : code;
}

static int prepare(struct search *search, const char *queries, int rank) {
    int code = MPI_SUCCESS;
    if (rank == 0 && queries != NULL)
        code = read_queries(search, queries);
    if (code != MPI_SUCCESS)
        ranks_abort(STDERR_FILENO, EXIT_NOT_RIGHT);
    code = MPI_Bcast(&search->count, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (code == MPI_SUCCESS)
        code = MPI_Bcast(search->queries, search->count * (int)sizeof *search->queries, MPI_BYTE, 0,
                         MPI_COMM_WORLD);
    return code == MPI_SUCCESS ? open_database(search) : code;
}

/* Whether what must be found was: of an own program's scores nothing is known but which sequence it is. */
static int judge(const struct search *search, const struct hit *best, int *known) {
    int wrong = 0;
    *known = 0;
    for (int i = 0; i < search->count; i++) {
        const struct query *query = &search->queries[i];
        printf("hit %s %s %d\n", query->name, best[i].score > 0 ? best[i].name : "none", best[i].score);
        if (query->known[0] == '\0')
            continue;
        ++*known;
        const bool right = strcmp(query->known, best[i].name) == 0 &&
                           (search->command != NULL || query->score == best[i].score);
        wrong += !right;
        if (!right)
            fprintf(stderr, "wulf-search: %s was to be found in %s with %d\n", query->name, query->known,
                    query->score);
    }
    return wrong;
}

static int work(struct search *search, int rank, int ranks, struct hit *found, struct hit *best) {
    int code = MPI_Barrier(MPI_COMM_WORLD);
    const uint64_t begin_ns = clock_now_ns();
    if (code == MPI_SUCCESS)
        code = ranks == 1  ? alone(search, found, best)
               : rank == 0 ? master(search, ranks, found, best)
                           : worker(search, found);
    if (code != MPI_SUCCESS)
        ranks_abort(STDERR_FILENO, EXIT_NOT_RIGHT); /* the others wait for this one */
    code = MPI_Barrier(MPI_COMM_WORLD);
    search->account.run_ns = clock_now_ns() - begin_ns;
    return code;
}

static void print(const struct search *search, const struct total *total, const uint64_t *read_ns, int ranks,
                  const struct hit *best, int *wrong) {
    static const char *const readings[] = {"made", "mpi-io", "own"};
    int known = 0;
    printf("program search\nranks %d\nqueries %d\npieces %" PRIu64 "\nread %s\n", ranks, search->count,
           search->pieces, readings[search->reading]);
    account_print(total);
    printf("read_s %.6f\n", (double)*read_ns / 1e9 / ranks);
    *wrong = judge(search, best, &known);
    printf("known %d\nwrong %d\nresult %s\n", known, *wrong,
           *wrong > 0  ? "wrong"
           : known > 0 ? "right"
                       : "not known");
}

static int run(struct search *search, const char *queries) {
    int rank = 0;
    int ranks = 1;
    int wrong = 0;
    uint64_t read_ns = 0;
    struct total total = {0};
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (prepare(search, queries, rank) != MPI_SUCCESS)
        ranks_abort(STDERR_FILENO, EXIT_NOT_RIGHT);
    struct hit *hits = calloc(2 * (size_t)search->count, sizeof *hits);
    if (hits == NULL)
        ranks_abort(STDERR_FILENO, EXIT_NOT_RIGHT);
    struct hit *const best = hits + search->count;
    int code = work(search, rank, ranks, hits, best);
    if (code == MPI_SUCCESS)
        code = account_total(&search->account, &total);
    if (code == MPI_SUCCESS)
        code = MPI_Reduce(&search->read_ns, &read_ns, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        print(search, &total, &read_ns, ranks, best, &wrong);
    if (code == MPI_SUCCESS)
        code = MPI_Bcast(&wrong, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (search->file != MPI_FILE_NULL)
        MPI_File_close(&search->file);
    free(hits);
    return code == MPI_SUCCESS && wrong == 0 ? EXIT_RIGHT : EXIT_NOT_RIGHT;
}

/* How the database is read; -1 with what is wrong said by rank 0. */
static int reading_of(const char *database, const char *queries, const char *read, const char *command,
                      bool makes) {
    int rank = 0;
    const char *wrong = NULL;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if ((database == NULL) != (queries == NULL))
        wrong = "--database and --queries go together";
    else if (strcmp(read, "mpi-io") != 0 && strcmp(read, "own") != 0)
        wrong = "--read takes mpi-io or own";
    else if (database == NULL && (makes || command != NULL))
        wrong = "--make and --command take --database and --queries";
    if (wrong != NULL && rank == 0)
        fprintf(stderr, "wulf-search: %s\n", wrong);
    if (wrong != NULL)
        return -1;
    return database == NULL ? READ_MADE : strcmp(read, "own") == 0 ? READ_OWN : READ_MPI_IO;
}

static int make_files(const struct search *search, const char *queries) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank > 0)
        return EXIT_RIGHT;
    const int code = write_file(search->database, "database", search, false);
    return code == EXIT_RIGHT ? write_file(queries, "queries", search, true) : code;
}

int main(int argc, char **argv) {
    uint64_t sequences = 400;
    uint64_t count = 6;
    uint64_t piece_bytes = 16384;
    uint64_t seed = 1;
    const char *queries = NULL;
    const char *read = "mpi-io";
    bool makes = false;
    static struct search search = {.reading = READ_MADE};
    const struct option options[] = {
        {.name = "--database",
         .text = &search.database,
         .help = "file of the sequences, in FASTA; without one they are made"},
        {.name = "--queries", .text = &queries, .help = "file of what is sought, in FASTA"},
        {.name = "--read",
         .text = &read,
         .help = "mpi-io: piece by piece from a file of all nodes; own: each node has it"},
        {.name = "--make", .flag = &makes, .help = "write both files and end"},
        {.name = "--command",
         .text = &search.command,
         .help = "what finds: a command that reads $CHUNK and $QUERIES, and prints query, sequence and score "
                 "a line"},
        OPTION_NUMBER("--sequences", &sequences, 1, 10000000, "that are made"),
        OPTION_NUMBER("--count", &count, 1, QUERIES_MOST, "of queries that are made"),
        OPTION_NUMBER("--piece", &piece_bytes, 1024, 1 << 28, "of the file that is one task [B]"),
        OPTION_NUMBER("--seed", &seed, 0, UINT32_MAX, "of what is made"),
    };
    int code = EXIT_NOT_RIGHT;
    if (!application_begin(options, sizeof options / sizeof options[0], &argc, &argv,
                           "sequences are sought in a database, piece by piece, and what is found is checked",
                           &code))
        return code;
    const int reading = reading_of(search.database, queries, read, search.command, makes);
    search.queries = calloc(QUERIES_MOST, sizeof *search.queries);
    search.file = MPI_FILE_NULL;
    if (reading < 0 || search.queries == NULL) {
        free(search.queries);
        MPI_Finalize();
        return EXIT_USAGE;
    }
    search.reading = (enum reading)reading;
    search.sequences = sequences;
    search.seed = seed;
    search.piece_bytes = piece_bytes;
    search.count = (int)count;
    if (reading == READ_MADE || makes)
        for (int i = 0; i < search.count; i++)
            plant(&search.queries[i], i, &search);
    if (queries != NULL)
        setenv("QUERIES", queries, 1);
    code = makes ? make_files(&search, queries) : run(&search, queries);
    free(search.whole);
    free(search.text);
    free(search.row);
    free(search.queries);
    MPI_Finalize();
    return code;
}
