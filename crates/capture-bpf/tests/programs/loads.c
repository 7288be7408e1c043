/* loads FIRST SECOND ROUNDS MILLISECONDS: loads one library, works in it, unloads it, does so with the other one, and so on.
   Prints where each was mapped. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>

static volatile int done;

__attribute__((noinline)) void call_first(void (*work)(double), double milliseconds) {
  work(milliseconds);
  done++;
}

__attribute__((noinline)) void call_second(void (*work)(double), double milliseconds) {
  work(milliseconds);
  done += 2;
}

int main(int argc, char **argv) {
  if (argc != 5) return 2;
  double milliseconds = atof(argv[4]);
  for (int round = 0; round < 2 * atoi(argv[3]); round++) {
    void *library = dlopen(argv[1 + round % 2], RTLD_NOW);
    if (!library) return 3;
    struct link_map *map;
    if (dlinfo(library, RTLD_DI_LINKMAP, &map)) return 4;
    printf("%lx\n", (unsigned long)map->l_addr);
    void (*work)(double) = (void (*)(double))dlsym(library, "work");
    if (round % 2)
      call_second(work, milliseconds);
    else
      call_first(work, milliseconds);
    if (dlclose(library)) return 5;
  }
  return 0;
}
