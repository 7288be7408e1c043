// Works for so many seconds in functions with frames of several shapes, in leaves and in the C library: qsort, strtod, snprintf.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NOINLINE __attribute__((noinline))
static double sum;

static int compare(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

NOINLINE static unsigned leaf(unsigned value) {
  for (int i = 0; i < 50; i++) value = value * 1664525 + (value >> 7);
  return value;
}

NOINLINE static void texts(unsigned seed) {
  char all[64][24], *sorted[64];
  for (int i = 0; i < 64; i++) {
    snprintf(all[i], sizeof all[i], "%u.%03u", leaf(seed + i) % 1000, i);
    sorted[i] = all[i];
  }
  qsort(sorted, 64, sizeof *sorted, compare);
  for (int i = 0; i < 64; i++) sum += strtod(sorted[i], NULL);
}

NOINLINE static unsigned tree(unsigned depth, unsigned seed) {
  volatile unsigned room[16];
  room[depth % 16] = leaf(seed);
  if (!depth) {
    texts(seed);
    return room[0];
  }
  unsigned left = tree(depth - 1, seed + 1), right = tree(depth - 1, seed ^ left);
  return left + right + room[depth % 16];
}

int main(int count, char **arguments) {
  time_t end = time(NULL) + (count > 1 ? atoi(arguments[1]) : 1);
  unsigned seed = 1;
  while (time(NULL) < end) seed = tree(5, seed);
  printf("%g %u\n", sum, seed);
  return 0;
}
