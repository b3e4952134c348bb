/* Threads of each rank send each other messages: two at the same time ("over"),
 * or in turn ("apart"); four, whose requests the library gives the handles of
 * others that have just ended ("reused"). Each rank prints what traced.c
 * prints. */
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS = 500, MOST = 4 };

static int rank, ranks, is_apart;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t together;

static void *talk(void *number) {
    const int tag = *(int *)number;
    const int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
    int from = tag, to = 0;
    MPI_Request request;
    pthread_barrier_wait(&together);
    for (int round = 0; round < ROUNDS; round++) {
        if (is_apart)
            pthread_mutex_lock(&turn);
        MPI_Irecv(&to, 1, MPI_INT, left, tag, MPI_COMM_WORLD, &request);
        MPI_Send(&from, 1, MPI_INT, right, tag, MPI_COMM_WORLD);
        if (is_apart) /* the other thread of the left rank may have its turn */
            for (int flag = 0; !flag;) {
                MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
                pthread_mutex_unlock(&turn);
                sched_yield();
                pthread_mutex_lock(&turn);
            }
        else
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (is_apart)
            pthread_mutex_unlock(&turn);
    }
    return NULL;
}

/* Every other request is freed, or looked for until it is there. */
static void *reuse(void *number) {
    const int tag = *(int *)number;
    const int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
    int from[2] = {tag, tag}, to = 0, flag = 0, index = 0;
    MPI_Request requests[2];
    pthread_barrier_wait(&together);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Irecv(&to, 1, MPI_INT, left, tag, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(from, 1, MPI_INT, right, tag, MPI_COMM_WORLD, &requests[1]);
        if (round % 3 == 0) {
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        } else if (round % 3 == 1) {
            MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
            MPI_Wait(&requests[1 - index], MPI_STATUS_IGNORE);
        } else {
            MPI_Request_free(&requests[1]);
            for (flag = 0; !flag;)
                MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
        }
    }
    return NULL;
}

int main(int count, char **words) {
    int provided = 0, numbers[MOST] = {1, 2, 3, 4};
    pthread_t threads[MOST];
    MPI_Init_thread(&count, &words, MPI_THREAD_MULTIPLE, &provided);
    if (provided != MPI_THREAD_MULTIPLE) {
        fprintf(stderr, "threaded: this library has no threads\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    is_apart = strcmp(words[1], "apart") == 0;
    const int reuses = strcmp(words[1], "reused") == 0, used = reuses ? MOST : 2;
    pthread_barrier_init(&together, NULL, (unsigned)used);
    for (int one = 0; one < used; one++)
        pthread_create(&threads[one], NULL, reuses ? reuse : talk, &numbers[one]);
    for (int one = 0; one < used; one++)
        pthread_join(threads[one], NULL);
    printf("%d %d %d %d %d 0\n", rank, used * ROUNDS, 4 * used * ROUNDS, used * ROUNDS, 4 * used * ROUNDS);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
