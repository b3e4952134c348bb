/* Small programs, one for each feature of MPI, that count what they send and
 * receive themselves. Each rank prints "RANK messages sent, bytes sent,
 * messages received, bytes received, collectives": what its trace must say.
 * Arguments: one of them, or "all"; how often (once). */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 5, MOST = 64 };

static int rank, ranks, left, right;
static long sent, sent_bytes, got, got_bytes, together;
static int data[4 * MOST * MOST], to[4 * MOST * MOST];
static int counts[MOST], places[MOST], to_counts[MOST], to_places[MOST];

static void sends(long bytes) {
    sent++;
    sent_bytes += bytes;
}

static void gets(long bytes) {
    got++;
    got_bytes += bytes;
}

static void blocking(void) {
    for (int round = 0; round < ROUNDS; round++) {
        const int count = 10 + round;
        if (rank % 2 == 0) {
            MPI_Send(data, count, MPI_INT, right, round, MPI_COMM_WORLD);
            MPI_Recv(to, MOST, MPI_INT, left, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(to, MOST, MPI_INT, left, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(data, count, MPI_INT, right, round, MPI_COMM_WORLD);
        }
        sends(count * 4);
        gets(count * 4);
    }
}

static void modes(void) {
    static char buffer[1 << 16];
    MPI_Request request;
    MPI_Buffer_attach(buffer, sizeof buffer);
    MPI_Bsend(data, 3, MPI_DOUBLE, right, 1, MPI_COMM_WORLD);
    MPI_Recv(to, 3, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Irecv(to, 5, MPI_INT, left, 2, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Rsend(data, 5, MPI_INT, right, 2, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Irecv(to, 7, MPI_CHAR, left, 3, MPI_COMM_WORLD, &request);
    MPI_Ssend(data, 7, MPI_CHAR, right, 3, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    int size;
    void *detached;
    MPI_Buffer_detach(&detached, &size);
    sends(24), gets(24), sends(20), gets(20), sends(7), gets(7);
    together++;
}

static void nonblocking(void) {
    MPI_Request requests[4];
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Irecv(to, MOST, MPI_INT, left, 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(to + MOST, MOST, MPI_INT, right, 2, MPI_COMM_WORLD, &requests[1]);
        MPI_Isend(data, 8, MPI_INT, right, 1, MPI_COMM_WORLD, &requests[2]);
        MPI_Issend(data, round, MPI_INT, left, 2, MPI_COMM_WORLD, &requests[3]);
        MPI_Waitall(4, requests, round % 2 ? MPI_STATUSES_IGNORE : (MPI_Status[4]){{0}});
        sends(32), gets(32), sends(4 * round), gets(4 * round);
    }
}

/* Everybody sends to rank 0, which takes it as it comes: way 0 Waitany, 1
 * Waitsome, 2 Testany, 3 Testsome. */
static void as_it_comes(int way) {
    if (rank > 0) {
        for (int round = 0; round < ROUNDS; round++) {
            MPI_Send(data, rank, MPI_INT, 0, round, MPI_COMM_WORLD);
            sends(4 * rank);
        }
        return;
    }
    MPI_Request requests[MOST];
    const int all = ROUNDS * (ranks - 1);
    for (int one = 0; one < all; one++)
        MPI_Irecv(to + one * MOST, MOST, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                  &requests[one]);
    for (int done = 0; done < all;) {
        int indices[MOST], flag = 1, some = 1;
        MPI_Status statuses[MOST];
        if (way == 0)
            MPI_Waitany(all, requests, indices, statuses);
        else if (way == 1)
            MPI_Waitsome(all, requests, &some, indices, statuses);
        else if (way == 2)
            MPI_Testany(all, requests, indices, &flag, statuses);
        else
            MPI_Testsome(all, requests, &some, indices, statuses);
        for (int one = 0; flag && one < some; one++, done++)
            gets(4 * statuses[one].MPI_SOURCE);
    }
}

static void any(void) { as_it_comes(0); }
static void some(void) { as_it_comes(1); }
static void testany(void) { as_it_comes(2); }
static void testsome(void) { as_it_comes(3); }

static void test(void) {
    MPI_Request requests[2];
    int flag = 0;
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Irecv(to, 4, MPI_INT, left, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(data, 4, MPI_INT, right, 0, MPI_COMM_WORLD, &requests[1]);
        for (flag = 0; !flag && round % 2;)
            MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE);
        while (round % 2 == 0 && (requests[0] != MPI_REQUEST_NULL || requests[1] != MPI_REQUEST_NULL)) {
            MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
            MPI_Test(&requests[1], &flag, MPI_STATUS_IGNORE);
        }
        sends(16), gets(16);
    }
}

static void farm(void) {
    if (rank > 0) {
        for (int value = 0; value >= 0;) {
            MPI_Send(data, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
            MPI_Recv(&value, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            sends(4), gets(4);
        }
        return;
    }
    for (int task = 0, working = ranks - 1; working > 0; task++) {
        MPI_Status status;
        const int value = task < 4 * ranks ? task : -1;
        MPI_Recv(to, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &status);
        MPI_Send(&value, 1, MPI_INT, status.MPI_SOURCE, 2, MPI_COMM_WORLD);
        sends(4), gets(4);
        working -= value < 0;
    }
}

static void persistent(void) {
    MPI_Request requests[2];
    MPI_Recv_init(to, MOST, MPI_INT, MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &requests[0]);
    MPI_Send_init(data, 6, MPI_INT, right, 9, MPI_COMM_WORLD, &requests[1]);
    for (int round = 0; round < ROUNDS; round++) {
        if (round % 2) {
            MPI_Startall(2, requests);
        } else {
            MPI_Start(&requests[0]);
            MPI_Start(&requests[1]);
        }
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        sends(24), gets(24);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

static void groups(void) {
    MPI_Comm half, again, two;
    MPI_Group world, first;
    int own;
    /* Of two ranks, each would be alone in its half. */
    MPI_Comm_split(MPI_COMM_WORLD, ranks < 4 ? 0 : rank % 2, -rank, &half);
    MPI_Comm_dup(half, &again);
    MPI_Comm_rank(again, &own);
    MPI_Bcast(data, 3, MPI_INT, 0, again);
    if (own == 1)
        MPI_Send(data, 2, MPI_INT, 0, 0, again), sends(8);
    if (own == 0)
        MPI_Recv(to, 2, MPI_INT, 1, 0, again, MPI_STATUS_IGNORE), gets(8);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 2, (int[2]){0, 1}, &first);
    MPI_Comm_create(MPI_COMM_WORLD, first, &two);
    together += 1 + 3; /* three communicators were made */
    if (two != MPI_COMM_NULL) {
        MPI_Allreduce(data, to, 1, MPI_INT, MPI_SUM, two);
        together++;
        MPI_Comm_free(&two);
    }
    MPI_Group_free(&first);
    MPI_Group_free(&world);
    MPI_Comm_free(&half);
    MPI_Comm_free(&again);
}

static void mesh(void) {
    MPI_Comm line;
    int before, after;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, (int[1]){0}, 0, &line);
    MPI_Cart_shift(line, 0, 1, &before, &after);
    MPI_Sendrecv(data, 9, MPI_INT, after, 4, to, MOST, MPI_INT, before, 4, line, MPI_STATUS_IGNORE);
    MPI_Neighbor_alltoall(data, 2, MPI_INT, to, 2, MPI_INT, line);
    MPI_Sendrecv_replace(data, 5, MPI_INT, before, 5, after, 5, line, MPI_STATUS_IGNORE);
    if (after != MPI_PROC_NULL)
        sends(36), gets(20);
    if (before != MPI_PROC_NULL)
        gets(36), sends(20);
    together += 2;
    MPI_Comm_free(&line);
}

static void graph(void) {
    MPI_Comm ring;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &left, MPI_UNWEIGHTED, 1, &right, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &ring);
    MPI_Neighbor_allgather(data, 2, MPI_INT, to, 2, MPI_INT, ring);
    counts[0] = to_counts[0] = 3;
    MPI_Neighbor_alltoallv(data, counts, places, MPI_INT, to, to_counts, to_places, MPI_INT, ring);
    together += 3;
    MPI_Comm_free(&ring);
}

static void variable(void) {
    for (int one = 0; one < ranks; one++) {
        counts[one] = one + 1;
        to_counts[one] = rank + 1;
        places[one] = to_places[one] = one * MOST;
    }
    MPI_Alltoallv(data, counts, places, MPI_INT, to, to_counts, to_places, MPI_INT, MPI_COMM_WORLD);
    MPI_Allgatherv(data, rank + 1, MPI_INT, to, counts, places, MPI_INT, MPI_COMM_WORLD);
    MPI_Gatherv(data, rank + 1, MPI_INT, to, counts, places, MPI_INT, ranks - 1, MPI_COMM_WORLD);
    MPI_Scatterv(data, counts, places, MPI_INT, to, rank + 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Reduce_scatter(data, to, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    together += 5;
}

static void usual(void) {
    MPI_Gather(data, 2, MPI_INT, to, 2, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Scatter(data, 2, MPI_INT, to, 2, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Allgather(data, 2, MPI_INT, to, 2, MPI_INT, MPI_COMM_WORLD);
    MPI_Alltoall(data, 2, MPI_INT, to, 2, MPI_INT, MPI_COMM_WORLD);
    MPI_Reduce(data, to, 2, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Scan(data, to, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Exscan(data, to, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Reduce_scatter_block(data, to, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    together += 8;
}

static void in_place(void) {
    void *const own = rank == 0 ? MPI_IN_PLACE : data;
    MPI_Allreduce(MPI_IN_PLACE, data, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data, 2, MPI_INT, MPI_COMM_WORLD);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data, 2, MPI_INT, MPI_COMM_WORLD);
    MPI_Gather(own, 2, MPI_INT, to, 2, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Reduce(own, data, 2, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD);
    together += 5;
}

static void begun(void) {
    MPI_Request requests[3];
    MPI_Ibarrier(MPI_COMM_WORLD, &requests[0]);
    MPI_Iallreduce(data, to, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
    MPI_Ibcast(data + MOST, 4, MPI_INT, 0, MPI_COMM_WORLD, &requests[2]);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    MPI_Ialltoall(data, 1, MPI_INT, to, 1, MPI_INT, MPI_COMM_WORLD, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    together += 4;
}

static void types(void) {
    MPI_Datatype column;
    MPI_Request request;
    MPI_Type_vector(6, 1, 8, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    MPI_Irecv(to, 6, MPI_DOUBLE, left, 0, MPI_COMM_WORLD, &request);
    MPI_Send(data, 1, column, right, 0, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Bcast(data, 2, column, 0, MPI_COMM_WORLD);
    MPI_Type_free(&column);
    sends(48), gets(48);
    together++;
}

static void probes(void) {
    MPI_Request request;
    MPI_Message handle;
    MPI_Status status;
    int flag = 0;
    MPI_Isend(data, 5, MPI_INT, right, 1, MPI_COMM_WORLD, &request);
    MPI_Probe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &status);
    MPI_Recv(to, MOST, MPI_INT, status.MPI_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Isend(data, 6, MPI_INT, right, 2, MPI_COMM_WORLD, &request);
    MPI_Mprobe(left, MPI_ANY_TAG, MPI_COMM_WORLD, &handle, &status);
    MPI_Mrecv(to, MOST, MPI_INT, &handle, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Isend(data, 7, MPI_INT, right, 3, MPI_COMM_WORLD, &request);
    while (!flag)
        MPI_Improbe(left, 3, MPI_COMM_WORLD, &flag, &handle, MPI_STATUS_IGNORE);
    MPI_Request received;
    MPI_Imrecv(to, MOST, MPI_INT, &handle, &received);
    MPI_Wait(&received, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    sends(20), gets(20), sends(24), gets(24), sends(28), gets(28);
}

static void made(void) {
    MPI_Comm later, two, sub;
    MPI_Group world, first;
    MPI_Request request;
    MPI_Comm_idup(MPI_COMM_WORLD, &later, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Sendrecv(data, 3, MPI_INT, right, 1, to, 3, MPI_INT, left, 1, later, MPI_STATUS_IGNORE);
    sends(12), gets(12);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 2, (int[2]){1, 0}, &first);
    together++;
    if (rank < 2) {
        MPI_Comm_create_group(MPI_COMM_WORLD, first, 7, &two);
        MPI_Bcast(data, 1, MPI_INT, 0, two);
        MPI_Comm_free(&two);
        together += 2;
    }
    MPI_Comm_split_type(later, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &sub);
    together++;
    MPI_Comm_free(&sub);
    MPI_Comm_free(&later);
    MPI_Group_free(&first);
    MPI_Group_free(&world);
}

/* Requests that are looked at, waited for twice, or nothing at all. */
static void looked(void) {
    MPI_Request requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status status;
    int flag = 0, index;
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    MPI_Waitany(3, requests, &index, MPI_STATUS_IGNORE);
    MPI_Irecv(to, 4, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(data, 4, MPI_INT, right, 1, MPI_COMM_WORLD, &requests[1]);
    while (!flag)
        MPI_Request_get_status(requests[0], &flag, &status);
    sends(16), gets(16);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Recv_init(to, 4, MPI_INT, left, 2, MPI_COMM_WORLD, &requests[0]);
    MPI_Send_init(data, 4, MPI_INT, right, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE); /* they were not started */
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    sends(16), gets(16);
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    /* Nobody waits for it. */
    MPI_Isend(data, 5, MPI_INT, right, 3, MPI_COMM_WORLD, &requests[0]);
    MPI_Request_free(&requests[0]);
    MPI_Recv(to, 5, MPI_INT, left, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    sends(20), gets(20);
    MPI_Barrier(MPI_COMM_WORLD);
    together++;
}

#ifdef MPI_SESSION_NULL
static void isendrecv(void) {
    MPI_Request requests[2];
    MPI_Isendrecv(data, 3, MPI_INT, right, 1, to, 5, MPI_INT, left, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isendrecv_replace(data, 2, MPI_INT, left, 2, right, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
#ifdef OPEN_MPI
    sends(12), gets(12), sends(8), gets(8);
#else
    /* The status of MPICH says nothing of what came. */
    sends(12), gets(0), sends(8), gets(0);
#endif
}

/* Begun again and again: passed through. */
static void repeated(void) {
    MPI_Request request;
    MPI_Allreduce_init(data, to, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
}
#endif

#if MPI_VERSION >= 4
static void large(void) {
    MPI_Request request;
    MPI_Count counts[MOST];
    MPI_Aint places[MOST];
    for (int one = 0; one < ranks; one++)
        counts[one] = one + 1, places[one] = one * MOST;
    MPI_Irecv_c(to, 4, MPI_INT, left, 1, MPI_COMM_WORLD, &request);
    MPI_Send_c(data, 4, MPI_INT, right, 1, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Allgatherv_c(data, rank + 1, MPI_INT, to, counts, places, MPI_INT, MPI_COMM_WORLD);
    MPI_Bcast_c(data, 2, MPI_INT, 0, MPI_COMM_WORLD);
    sends(16), gets(16);
    together += 2;
}
#endif

static void windows(void) {
    MPI_Win window;
    MPI_Win_create(data, sizeof data, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
}

static void files(void) {
    MPI_File file;
    MPI_File_open(MPI_COMM_WORLD, "traced.data", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_write_at_all(file, rank * 64, data, 64, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

static void between(void) {
    MPI_Comm half, both;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 5, &both);
    MPI_Barrier(both);
    MPI_Comm_free(&both);
    MPI_Comm_free(&half);
}

static void take_back(MPI_Request *request) {
    MPI_Cancel(request);
    MPI_Wait(request, MPI_STATUS_IGNORE);
}

/* Three receives that get nothing, a message like those they waited for, and
 * one that is cancelled when its message has come. */
static void cancels(void) {
    MPI_Request one, any, again;
    MPI_Irecv(to, 4, MPI_INT, left, 1, MPI_COMM_WORLD, &one);
    MPI_Irecv(to, 4, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &any);
    MPI_Recv_init(to, 4, MPI_INT, left, 1, MPI_COMM_WORLD, &again);
    for (int round = 0; round < 2; round++) {
        MPI_Start(&again);
        take_back(&again);
    }
    take_back(&any);
    take_back(&one);
    MPI_Request_free(&again);
    MPI_Barrier(MPI_COMM_WORLD), together++;
    MPI_Sendrecv(data, 4, MPI_INT, right, 1, to, 4, MPI_INT, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    sends(16), gets(16);
    MPI_Irecv(to, 4, MPI_INT, left, 2, MPI_COMM_WORLD, &one);
    MPI_Ssend(data, 4, MPI_INT, right, 2, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD), together++;
    take_back(&one);
    sends(16), gets(16);
}

/* Nobody sees what becomes of it. */
static void forgets(void) {
    MPI_Request request;
    MPI_Irecv(to, 4, MPI_INT, left, 1, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Request_free(&request);
}

static void many(void) {
    for (int round = 0; round < 6000; round++) {
        MPI_Sendrecv(data, 1, MPI_INT, right, 1, to, 1, MPI_INT, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        sends(4), gets(4);
    }
}

/* Others see no end of it. */
static void killed(void) {
    many();
    if (rank == 1)
        kill(getpid(), SIGKILL);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void dies(void) {
    blocking();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1)
        abort();
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int count, char **words) {
    static const struct {
        const char *name;
        void (*run)(void);
    } programs[] = {{"blocking", blocking},
                    {"modes", modes},
                    {"nonblocking", nonblocking},
                    {"waitany", any},
                    {"waitsome", some},
                    {"testany", testany},
                    {"testsome", testsome},
                    {"test", test},
                    {"farm", farm},
                    {"persistent", persistent},
                    {"groups", groups},
                    {"mesh", mesh},
                    {"graph", graph},
                    {"variable", variable},
                    {"usual", usual},
                    {"in_place", in_place},
                    {"begun", begun},
                    {"types", types},
                    {"probes", probes},
                    {"made", made},
                    {"looked", looked},
#ifdef MPI_SESSION_NULL
                    {"isendrecv", isendrecv},
#endif
#if MPI_VERSION >= 4
                    {"large", large},
#endif
                    {"cancels", cancels},
                    {"many", many},
                    /* "all" ends here. */
                    {"", NULL},
#ifdef MPI_SESSION_NULL
                    {"repeated", repeated},
#endif
                    {"files", files},
                    {"between", between},
                    {"forgets", forgets},
                    {"killed", killed},
                    {"windows", windows},
                    {"dies", dies}};
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    left = (rank + ranks - 1) % ranks;
    right = (rank + 1) % ranks;
    int is_all = strcmp(words[1], "all") == 0;
    const int times = count > 2 ? atoi(words[2]) : 1;
    for (size_t one = 0; one < sizeof programs / sizeof programs[0]; one++) {
        is_all = is_all && programs[one].run != NULL;
        if (is_all || strcmp(words[1], programs[one].name) == 0) {
            MPI_Pcontrol((int)one);
            for (int i = 0; i < times; i++)
                programs[one].run();
        }
        /* Receives from anybody are of one program. */
        if (is_all)
            MPI_Barrier(MPI_COMM_WORLD), together++;
    }
    printf("%d %ld %ld %ld %ld %ld\n", rank, sent, sent_bytes, got, got_bytes, together);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
