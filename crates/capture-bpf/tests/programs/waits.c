/* Sleeps in two functions in turn, and writes to a file how long each was off the CPU by its own clocks, in nanoseconds; then the
 * run-queue wait of two threads that share one CPU, and how long that took. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long long now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static long long sleep_for(long ns)
{
    struct timespec wait = { 0, ns };
    long long begin = now(CLOCK_MONOTONIC), busy = now(CLOCK_THREAD_CPUTIME_ID);
    nanosleep(&wait, 0);
    /* Entering and leaving the kernel takes CPU time, much of a short sleep if another virtual machine has the caches. */
    busy = now(CLOCK_THREAD_CPUTIME_ID) - busy;
    return now(CLOCK_MONOTONIC) - begin - busy;
}

__attribute__((noinline)) long long sleeps_short(void)
{
    long long time = sleep_for(300000);
    /* No tail call. */
    __asm__ volatile("" : "+r"(time));
    return time;
}

__attribute__((noinline)) long long sleeps_long(void)
{
    long long time = sleep_for(1500000);
    __asm__ volatile("" : "+r"(time));
    return time;
}

__attribute__((noinline)) void *contends(void *ms)
{
    long long begin = now(CLOCK_THREAD_CPUTIME_ID), wall = now(CLOCK_MONOTONIC);
    while (now(CLOCK_THREAD_CPUTIME_ID) - begin < (long)ms * 1000000LL)
        for (volatile int i = 0; i < 10000; i++)
            ;
    return (void *)(now(CLOCK_MONOTONIC) - wall - (now(CLOCK_THREAD_CPUTIME_ID) - begin));
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 1;
    long long sums[2] = { 0, 0 };
    for (long i = atol(argv[1]); i > 0; i--) {
        sums[0] += sleeps_short();
        sums[1] += sleeps_long();
    }
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    sched_setaffinity(0, sizeof(one), &one);
    pthread_t threads[2];
    void *waited[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, contends, (void *)atol(argv[2]));
    long long joined = now(CLOCK_MONOTONIC);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], &waited[i]);
    joined = now(CLOCK_MONOTONIC) - joined;
    FILE *file = fopen(argv[3], "w");
    if (!file)
        return 1;
    fprintf(file, "%lld %lld %lld %lld\n", sums[0], sums[1], (long long)waited[0] + (long long)waited[1], joined);
    return fclose(file) != 0;
}
