/* meter SECONDS DEPTH: does the same piece of work again and again under a stack of DEPTH frames, and prints how many
   nanoseconds of processor time each piece took, for as long: what an interrupt's handler takes is charged to whom it
   interrupts. Each piece takes about 4 ms. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile unsigned long sink;

static unsigned long now(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * 1000000000ul + t.tv_nsec;
}

__attribute__((noinline)) static unsigned long piece(unsigned long state) {
  for (int i = 0; i < 4000000; i++) state = state * 6364136223846793005ul + 1442695040888963407ul;
  return state;
}

__attribute__((noinline)) static void measure(unsigned long end) {
  unsigned long state = 1;
  while (now(CLOCK_MONOTONIC) < end) {
    unsigned long begin = now(CLOCK_THREAD_CPUTIME_ID);
    state = piece(state);
    printf("%lu\n", now(CLOCK_THREAD_CPUTIME_ID) - begin);
  }
  sink += state;
}

__attribute__((noinline)) static int descend(int depth, unsigned long end) {
  volatile char room[100];
  room[0] = depth;
  if (depth > 0)
    descend(depth - 1, end);
  else
    measure(end);
  return room[0];
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  unsigned long end = now(CLOCK_MONOTONIC) + (unsigned long)(atof(argv[1]) * 1e9);
  return descend(atoi(argv[2]) - 6, end) == 12345;
}
