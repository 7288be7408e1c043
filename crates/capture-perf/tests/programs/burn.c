/* Uses processor time in a known function: burn MILLISECONDS [CHILDREN]. With CHILDREN, that many processes one after
   the other use it up, each its share. */
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;

static double used(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

__attribute__((noinline)) void burn_here(double milliseconds) {
  double end = used() + milliseconds;
  while (used() < end)
    for (int i = 0; i < 20000; i++) sink += i;
}

__attribute__((noinline)) void outer(double milliseconds) {
  burn_here(milliseconds);
  sink++;
}

int main(int argc, char **argv) {
  double milliseconds = argc > 1 ? atof(argv[1]) : 100;
  int children = argc > 2 ? atoi(argv[2]) : 0;
  if (children == 0) outer(milliseconds);
  for (int i = 0; i < children; i++) {
    pid_t pid = fork();
    if (pid == 0) {
      outer(milliseconds / children);
      _exit(0);
    }
    waitpid(pid, 0, 0);
  }
  return 7;
}
