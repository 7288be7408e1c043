// Takes page faults, a known number of them: in itself, and in short-lived children. Says how many the kernel counted, and the processor time of the
// children in nanoseconds.
//
//   touches ROUNDS             each round touches 1,000 new pages
//   touches ROUNDS children    each round is a child that does so
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGES = 1000, PAGE = 4096 };

__attribute__((noinline)) void touch_pages(volatile char *memory) {
    for (int page = 0; page < PAGES; page++)
        memory[page * PAGE] = 1;
}

__attribute__((noinline)) void take_round(void) {
    char *memory = mmap(0, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        exit(1);
    // Otherwise one fault could map 2 MiB.
    madvise(memory, PAGES * PAGE, MADV_NOHUGEPAGE);
    touch_pages(memory);
    munmap(memory, PAGES * PAGE);
}

int main(int count, char **words) {
    int rounds = count > 1 ? atoi(words[1]) : 1;
    int forks = count > 2 && !strcmp(words[2], "children");
    for (int round = 0; round < rounds; round++) {
        pid_t child = forks ? fork() : 0;
        if (child == 0)
            take_round();
        if (forks && child == 0)
            _exit(0);
        if (forks)
            waitpid(child, 0, 0);
    }
    struct rusage own, of_children;
    getrusage(RUSAGE_SELF, &own);
    getrusage(RUSAGE_CHILDREN, &of_children);
    long faults = own.ru_minflt + own.ru_majflt + of_children.ru_minflt + of_children.ru_majflt;
    struct timeval user = of_children.ru_utime, kernel = of_children.ru_stime;
    printf("%ld %ld\n", faults, (user.tv_sec + kernel.tv_sec) * 1000000000L + (user.tv_usec + kernel.tv_usec) * 1000L);
    return 0;
}
