/* Passes a place at full speed under a stack of a given depth: calls FRAMES SECONDS. Prints how often, and nanoseconds of
 * processor time for each, without the first half second; then the seconds of processor time that all of it took. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static double now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

__attribute__((noinline)) void probed(long i)
{
    __asm__ volatile("" ::"r"(i));
}

__attribute__((noinline)) long under(int frames, long times)
{
    volatile char part[64];
    part[0] = frames;
    if (frames)
        return under(frames - 1, times) + part[0];
    for (long i = 0; i < times; i++) {
        probed(i);
        syscall(SYS_getppid);
    }
    return part[0];
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    int frames = atoi(argv[1]);
    double length = atof(argv[2]), begin = now(CLOCK_MONOTONIC), from = 0, time;
    long times = 0;
    do {
        under(frames, 500);
        time = now(CLOCK_MONOTONIC) - begin;
        if (from)
            times += 500;
        else if (time > 0.5)
            from = now(CLOCK_PROCESS_CPUTIME_ID);
    } while (time < length);
    double own = now(CLOCK_PROCESS_CPUTIME_ID);
    printf("%ld %.1f %.3f\n", times, (own - from) / times * 1e9, own);
    return 0;
}
