/* Waits in known ways, and prints how long by its own clock, in nanoseconds: sleeps, a lock, a pipe; and the processor time of two
 * threads that had to share one processor. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long long now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int ends[2];

static void pause_ms(long ms)
{
    struct timespec wait = { 0, ms * 1000000 };
    nanosleep(&wait, 0);
}

__attribute__((noinline)) void sleeps(void)
{
    for (int i = 0; i < 20; i++)
        pause_ms(5);
}

__attribute__((noinline)) void takes_lock(void)
{
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
}

__attribute__((noinline)) void reads_pipe(void)
{
    char byte;
    if (read(ends[0], &byte, 1) != 1)
        exit(1);
}

static void *writes(void *none)
{
    pause_ms(150);
    pthread_mutex_unlock(&lock);
    pause_ms(150);
    if (write(ends[1], "x", 1) != 1)
        exit(1);
    return none;
}

static void *holds(void *none)
{
    pthread_mutex_lock(&lock);
    return writes(none);
}

__attribute__((noinline)) void *contends(void *ms)
{
    long long begin = now(CLOCK_THREAD_CPUTIME_ID), wall = now(CLOCK_MONOTONIC);
    while (now(CLOCK_THREAD_CPUTIME_ID) - begin < (long)ms * 1000000LL)
        for (volatile int i = 0; i < 10000; i++)
            ;
    /* All of the time that it didn't run it could have. */
    return (void *)(now(CLOCK_MONOTONIC) - wall - (now(CLOCK_THREAD_CPUTIME_ID) - begin));
}

int main(int argc, char **argv)
{
    pthread_t thread, other;
    if (pipe(ends) || argc < 2)
        return 1;
    long long begin = now(CLOCK_MONOTONIC);
    sleeps();
    printf("%lld\n", now(CLOCK_MONOTONIC) - begin);
    pthread_create(&thread, 0, holds, 0);
    pause_ms(30);
    begin = now(CLOCK_MONOTONIC);
    takes_lock();
    printf("%lld\n", now(CLOCK_MONOTONIC) - begin);
    begin = now(CLOCK_MONOTONIC);
    reads_pipe();
    printf("%lld\n", now(CLOCK_MONOTONIC) - begin);
    pthread_join(thread, 0);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    sched_setaffinity(0, sizeof(one), &one);
    void *first = 0, *second = 0;
    pthread_create(&thread, 0, contends, (void *)atol(argv[1]));
    pthread_create(&other, 0, contends, (void *)atol(argv[1]));
    pthread_join(thread, &first);
    pthread_join(other, &second);
    printf("%lld\n", (long long)first + (long long)second);
    return 0;
}
