/* A library whose only function uses CPU time with a frame of SIZE bytes. */
#include <time.h>

static volatile unsigned long sink;

static double used(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

__attribute__((noinline)) static void spin(volatile char *room, double milliseconds) {
  volatile char own[SIZE / 2 + 8];
  double end = used() + milliseconds;
  own[0] = room[0];
  while (used() < end)
    for (int i = 0; i < 5000; i++) sink += i + own[0];
}

void work(double milliseconds) {
  volatile char room[SIZE];
  room[0] = 0;
  spin(room, milliseconds);
  sink++;
}
