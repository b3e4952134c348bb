/* Two threads of each rank send each other messages: at the same time ("over"), or in turn ("apart"). Each rank
 * prints what traced.c prints. */
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS = 500 };

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

int main(int count, char **words) {
  int provided = 0, numbers[2] = {1, 2};
  pthread_t threads[2];
  MPI_Init_thread(&count, &words, MPI_THREAD_MULTIPLE, &provided);
  if (provided != MPI_THREAD_MULTIPLE) {
    fprintf(stderr, "threaded: this library has no threads\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  is_apart = strcmp(words[1], "apart") == 0;
  pthread_barrier_init(&together, NULL, 2);
  for (int one = 0; one < 2; one++)
    pthread_create(&threads[one], NULL, talk, &numbers[one]);
  for (int one = 0; one < 2; one++)
    pthread_join(threads[one], NULL);
  printf("%d %d %d %d %d 0\n", rank, 2 * ROUNDS, 8 * ROUNDS, 2 * ROUNDS,
         8 * ROUNDS);
  fflush(stdout);
  MPI_Finalize();
  return 0;
}
