/* Stacks of all kinds, for about a second: recursion, inlined calls, a thread of its own name, calls into the kernel. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile unsigned long sink;

__attribute__((noipa)) static unsigned long fib(unsigned n)
{
    unsigned long sum = n < 2 ? n : fib(n - 1) + fib(n - 2);
    __asm__ volatile("" : "+r"(sum)); /* no tail call */
    return sum;
}

static inline __attribute__((always_inline)) unsigned long mixed(unsigned long x)
{
    for (int round = 0; round < 1000; round++)
        x = x * 6364136223846793005UL + 1442695040888963407UL;
    return x;
}

__attribute__((noipa)) static void busy(long steps)
{
    for (long step = 0; step < steps; step++)
        sink += mixed(sink);
    __asm__ volatile("");
}

__attribute__((noipa)) static void asks(long calls)
{
    for (long call = 0; call < calls; call++)
        sink += (unsigned long)syscall(SYS_getppid);
    __asm__ volatile("");
}

static void *worker(void *unused)
{
    pthread_setname_np(pthread_self(), "worker");
    for (int round = 0; round < 20; round++)
        busy(15000);
    return unused;
}

int main(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, worker, NULL))
        return 1;
    for (int round = 0; round < 20; round++) {
        sink += fib(32);
        busy(8000);
        asks(60000);
    }
    pthread_join(thread, NULL);
    printf("%lu\n", sink);
    return 0;
}
