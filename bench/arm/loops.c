/* Loops over arrays, as often as the argument says: what a compiler vectorises, unrolls and inlines. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 4096

struct point { double x, y, z; };

static double dot(const struct point *a, const struct point *b) { return a->x * b->x + a->y * b->y + a->z * b->z; }

static uint32_t mix(uint32_t value) {
  value ^= value >> 16;
  value *= 0x7feb352dU;
  value ^= value >> 15;
  return value * 0x846ca68bU;
}

static int by_value(const void *a, const void *b) {
  uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;
  return (one > other) - (one < other);
}

__attribute__((noinline)) static double sum_of(const struct point *points) {
  double sum = 0;
  for (int i = 1; i < COUNT; i++) sum += dot(&points[i - 1], &points[i]);
  return sum;
}

__attribute__((noinline)) static uint32_t search(const uint32_t *sorted, uint32_t wanted) {
  uint32_t low = 0, high = COUNT;
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    if (sorted[middle] < wanted) low = middle + 1; else high = middle;
  }
  return low;
}

int main(int argc, char **argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 100;
  static struct point points[COUNT];
  static uint32_t numbers[COUNT];
  double sum = 0;
  uint64_t places = 0;
  for (int round = 0; round < rounds; round++) {
    for (uint32_t i = 0; i < COUNT; i++) {
      numbers[i] = mix(i + (uint32_t)round);
      points[i] = (struct point){ numbers[i] % 7, i % 5, round % 3 };
    }
    sum += sum_of(points);
    qsort(numbers, COUNT, sizeof *numbers, by_value);
    for (uint32_t i = 0; i < COUNT; i++) places += search(numbers, mix(i));
  }
  printf("%g %llu\n", sum, (unsigned long long)places);
}
