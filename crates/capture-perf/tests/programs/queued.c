/* Spends elapsed time in one way: queued spin|sleep|threads|children MILLISECONDS [FILE]. Everything that spins is on the same CPU, so that there
   is run-queue wait. At the end, writes the kernel's figures into FILE: CPU time and run-queue wait, in nanoseconds.
   `threads`: two threads spin, and end; then the program sleeps for as long. `children`: 50 processes spin, one after the other, in that time. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;
static double milliseconds;
static unsigned long ran, waited, total_ran, total_waited;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static void meet(void) {
  cpu_set_t all, one;
  sched_getaffinity(0, sizeof all, &all);
  int cpu = 0;
  while (!CPU_ISSET(cpu, &all)) cpu++;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  sched_setaffinity(0, sizeof one, &one);
}

static void account(void) {
  unsigned long one, other;
  FILE *file = fopen("/proc/thread-self/schedstat", "r");
  if (file && fscanf(file, "%lu %lu", &one, &other) == 2) {
    pthread_mutex_lock(&lock);
    ran += one;
    waited += other;
    pthread_mutex_unlock(&lock);
  }
  if (file) fclose(file);
}

static void *spin(void *argument) {
  double end = now() + milliseconds;
  meet();
  while (now() < end)
    for (int i = 0; i < 20000; i++) sink += i;
  account();
  return argument;
}

/* Each child sends its own times through a pipe. */
static void children(int many) {
  milliseconds /= many;
  for (int i = 0; i < many; i++) {
    int ends[2];
    unsigned long said[2];
    if (pipe(ends)) return;
    if (fork() == 0) {
      spin(NULL);
      said[0] = ran, said[1] = waited;
      _exit(write(ends[1], said, sizeof said) != sizeof said);
    }
    wait(NULL);
    close(ends[1]);
    if (read(ends[0], said, sizeof said) == sizeof said) total_ran += said[0], total_waited += said[1];
    close(ends[0]);
  }
  ran = total_ran, waited = total_waited;
  account();
}

int main(int argc, char **argv) {
  const char *way = argc > 1 ? argv[1] : "";
  milliseconds = argc > 2 ? atof(argv[2]) : 100;
  if (!strcmp(way, "spin")) {
    spin(NULL);
  } else if (!strcmp(way, "children")) {
    children(50);
  } else {
    pthread_t threads[2];
    int many = !strcmp(way, "threads") ? 2 : 0;
    for (int i = 0; i < many; i++) pthread_create(&threads[i], NULL, spin, NULL);
    for (int i = 0; i < many; i++) pthread_join(threads[i], NULL);
    usleep(milliseconds * 1000);
    account();
  }
  FILE *file = argc > 3 ? fopen(argv[3], "w") : NULL;
  if (file) fprintf(file, "%lu %lu\n", ran, waited);
  return 0;
}
