/* daemon TIMES MS BUFFER: reads /proc so often, each so many milliseconds, by calls of getdents64 with so small a buffer. Prints how
 * long each call took in nanoseconds by the processor's time stamp counter, a line each. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

int main(int count, char **words)
{
    enum { MOST = 1 << 18 };
    static unsigned long long taken[MOST];
    long times = atol(words[1]), ms = atol(words[2]), size = atol(words[3]), calls = 0;
    char *buffer = malloc(size);
    double begin = now();
    unsigned long long first = __rdtsc();
    struct timespec pause = { ms / 1000, ms % 1000 * 1000000 };
    for (; times; times--) {
        int fd = open("/proc", O_RDONLY | O_DIRECTORY);
        for (long got = 1; got > 0 && calls < MOST; calls++) {
            unsigned long long at = __rdtsc();
            got = syscall(SYS_getdents64, fd, buffer, size);
            taken[calls] = __rdtsc() - at;
        }
        close(fd);
        nanosleep(&pause, 0);
    }
    double each = (now() - begin) / (__rdtsc() - first);
    for (long call = 0; call < calls; call++)
        fprintf(stderr, "%.0f\n", taken[call] * each);
    return 0;
}
