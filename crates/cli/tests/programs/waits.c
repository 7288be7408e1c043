/* Waits in known ways: sleeps, a lock, a pipe. Prints for each the duration by its own clock, and the kernel's figure for the run-queue wait
 * (an upper bound); then the run-queue wait of two threads that share one CPU. All in nanoseconds. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
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

/* Run-queue wait of the thread so far, in nanoseconds; -1 if the kernel does not report it. */
static long long queued(void)
{
    long long waited = -1;
    FILE *file = fopen("/proc/thread-self/schedstat", "r");
    if (file && fscanf(file, "%*s %lld", &waited) != 1)
        waited = -1;
    if (file)
        fclose(file);
    return waited;
}

static void measure(void (*function)(void))
{
    long long before = queued(), begin = now(CLOCK_MONOTONIC);
    function();
    long long lasted = now(CLOCK_MONOTONIC) - begin, after = queued();
    printf("%lld %lld\n", lasted, before < 0 || after < 0 ? lasted : after - before);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int ends[2];
/* Number of functions that have begun to wait for the other thread, which lets them wait from then on; -1: that thread is not ready. */
static atomic_int begun = -1;

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
    begun = 1;
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
}

__attribute__((noinline)) void reads_pipe(void)
{
    char byte;
    begun = 2;
    if (read(ends[0], &byte, 1) != 1)
        exit(1);
}

static void until(int number)
{
    while (begun < number)
        pause_ms(1);
    pause_ms(150);
}

static void *lets_wait(void *none)
{
    pthread_mutex_lock(&lock);
    begun = 0;
    until(1);
    pthread_mutex_unlock(&lock);
    until(2);
    if (write(ends[1], "x", 1) != 1)
        exit(1);
    return none;
}

__attribute__((noinline)) void *contends(void *ms)
{
    long long begin = now(CLOCK_THREAD_CPUTIME_ID), wall = now(CLOCK_MONOTONIC);
    while (now(CLOCK_THREAD_CPUTIME_ID) - begin < (long)ms * 1000000LL)
        for (volatile int i = 0; i < 10000; i++)
            ;
    /* The thread was runnable all the time that it did not run. */
    return (void *)(now(CLOCK_MONOTONIC) - wall - (now(CLOCK_THREAD_CPUTIME_ID) - begin));
}

int main(int argc, char **argv)
{
    pthread_t thread, other;
    if (pipe(ends) || argc < 2)
        return 1;
    measure(sleeps);
    pthread_create(&thread, 0, lets_wait, 0);
    while (begun < 0)
        pause_ms(1);
    measure(takes_lock);
    measure(reads_pipe);
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
