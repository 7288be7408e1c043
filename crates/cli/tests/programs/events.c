/* Causes countable events, and prints the kernel's counts of them: page faults of its own pages, and context switches. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

__attribute__((noinline)) void probed(long i)
{
    __asm__ volatile("" ::"r"(i));
}

__attribute__((noinline)) void touch(volatile char *at, long pages)
{
    for (long i = 0; i < pages; i++)
        at[i * 4096] = 1;
}

/* Touches pages, the same few again after they were given back. */
__attribute__((noinline)) void touch_again(volatile char *at, long pages, long few)
{
    for (; pages > 0; pages -= few) {
        touch(at, pages < few ? pages : few);
        madvise((void *)at, few * 4096, MADV_DONTNEED);
    }
}

/* Every fourth call is the first to touch another page of the stack. */
__attribute__((noinline)) long grow(long calls)
{
    volatile char part[1024];
    part[0] = 1;
    return calls > 1 ? grow(calls - 1) + part[0] : 0;
}

int main(int argc, char **argv)
{
    long pages = atol(argv[1]), parents = atol(argv[2]), calls = atol(argv[3]), sleeps = atol(argv[4]);
    struct rusage before, after;
    long few = 10000;
    char *at = mmap(0, few * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(at, few * 4096, MADV_NOHUGEPAGE);
    getrusage(RUSAGE_SELF, &before);
    touch_again(at, pages, few);
    getrusage(RUSAGE_SELF, &after);
    for (long i = 0; i < parents; i++)
        getppid();
    for (long i = 0; i < calls; i++)
        probed(i);
    struct timespec wait = { 0, 1000000 };
    for (long i = 0; i < sleeps; i++)
        nanosleep(&wait, 0);
    if (argc > 5)
        grow(atol(argv[5]));
    printf("%ld\n", after.ru_minflt - before.ru_minflt);
    getrusage(RUSAGE_SELF, &after);
    printf("%ld\n", after.ru_nvcsw);
    return 0;
}
