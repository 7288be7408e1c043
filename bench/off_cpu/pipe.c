/* pipe SECONDS DEPTH BUSY: two processes on one processor hand a byte to and fro over pipes for as long, under stacks of DEPTH
   frames, each busy for BUSY nanoseconds in between. Prints the round trips, each of which takes two switches of threads at least, and
   the processor time of both in nanoseconds. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static unsigned long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ul + t.tv_nsec;
}

static unsigned long used(int who) {
  struct rusage usage;
  getrusage(who, &usage);
  return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000ul + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000ul;
}

static unsigned long busy;

static void work(void) {
  for (unsigned long end = busy ? now() + busy : 0; end && now() < end;)
    ;
}

__attribute__((noinline)) static unsigned long hand(int from, int to, unsigned long end, int begins) {
  unsigned long trips = 0;
  char byte = 0;
  if (begins && write(to, &byte, 1) != 1) return 0;
  while (read(from, &byte, 1) == 1) {
    trips++;
    work();
    if (end && now() >= end) break;
    if (write(to, &byte, 1) != 1) break;
  }
  return trips;
}

__attribute__((noinline)) static unsigned long descend(int depth, int from, int to, unsigned long end, int begins) {
  volatile unsigned long trips;
  if (depth > 0)
    trips = descend(depth - 1, from, to, end, begins);
  else
    trips = hand(from, to, end, begins);
  return trips;
}

int main(int argc, char **argv) {
  int there[2], back[2];
  if (argc != 4 || pipe(there) || pipe(back)) return 2;
  busy = strtoul(argv[3], 0, 10);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(0, &one);
  if (sched_setaffinity(0, sizeof one, &one)) return 2;
  int depth = atoi(argv[2]) - 6;
  if (!fork()) {
    close(there[1]);
    descend(depth, there[0], back[1], 0, 0);
    _exit(0);
  }
  close(there[0]);
  close(back[1]);
  unsigned long trips = descend(depth, back[0], there[1], now() + (unsigned long)(atof(argv[1]) * 1e9), 1);
  close(there[1]);
  wait(0);
  printf("%lu %lu\n", trips, used(RUSAGE_SELF) + used(RUSAGE_CHILDREN));
  return 0;
}
