/* Sleeps for 50 us time and again: for how long it was off the processor in nanoseconds, by its clocks.
 *
 *     many_naps N */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long long read_clock(clockid_t which)
{
    struct timespec time;
    clock_gettime(which, &time);
    return time.tv_sec * 1000000000ll + time.tv_nsec;
}

static long long off(void)
{
    return read_clock(CLOCK_MONOTONIC) - read_clock(CLOCK_THREAD_CPUTIME_ID);
}

__attribute__((noinline)) static void naps(int times)
{
    struct timespec pause = {0, 50000};
    while (times--)
        nanosleep(&pause, 0);
}

int main(int argc, char **argv)
{
    long long begun = off();
    naps(argc > 1 ? atoi(argv[1]) : 10000);
    printf("%lld\n", off() - begun);
}
