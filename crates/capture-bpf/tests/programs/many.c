/* Burns so many milliseconds of processor time, beside 6,000 functions that make its unwind table a large one. SEED makes
   it another program. */
#include <stdlib.h>
#include <time.h>

static volatile unsigned long sink;

static double used(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

__attribute__((noinline)) void burn_here(double milliseconds) {
  double end = used() + milliseconds;
  while (used() < end)
    for (int i = 0; i < 20000; i++) sink += i + SEED;
}

__asm__(".text\n"
        ".rept 6000\n"
        ".cfi_startproc\n"
        "sub $24, %rsp\n"
        ".cfi_def_cfa_offset 32\n"
        "add $24, %rsp\n"
        ".cfi_def_cfa_offset 8\n"
        "ret\n"
        ".cfi_endproc\n"
        ".endr");

int main(int argc, char **argv) {
  burn_here(argc > 1 ? atof(argv[1]) : 100);
  sink++;
  return 0;
}
