/* paced CALLS_PER_SECOND SECONDS: so many getppid a second, in batches of a hundredth of one; 0: as many as it can, SECONDS times
 * a million. Prints how many it made, and the user and system time that this took. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static double seconds(struct timeval time)
{
    return time.tv_sec + time.tv_usec * 1e-6;
}

int main(int count, char **words)
{
    long rate = atol(words[1]), times = atol(words[2]), made = 0;
    if (!rate)
        for (; made < times * 1000000; made++)
            syscall(SYS_getppid);
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (long batch = 0; rate && batch < times * 100; batch++) {
        for (long left = rate / 100; left; left--, made++)
            syscall(SYS_getppid);
        next.tv_nsec += 10000000;
        next.tv_sec += next.tv_nsec / 1000000000;
        next.tv_nsec %= 1000000000;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, 0);
    }
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    fprintf(stderr, "%ld %.6f\n", made, seconds(used.ru_utime) + seconds(used.ru_stime));
    return 0;
}
