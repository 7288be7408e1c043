/* Makes short system calls, and writes what one of each takes in its quickest round, in nanoseconds, to the file that TRUTH names. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 20, CALLS = 5000 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

int main(void)
{
    char bytes[64];
    int zeros = open("/dev/zero", O_RDONLY);
    double best_read = 1e9, best_getppid = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        double begin = now();
        for (int i = 0; i < CALLS; i++)
            if (read(zeros, bytes, sizeof bytes) != sizeof bytes)
                return 1;
        double between = now();
        for (int i = 0; i < CALLS; i++)
            getppid();
        double end = now();
        if ((between - begin) / CALLS < best_read)
            best_read = (between - begin) / CALLS;
        if ((end - between) / CALLS < best_getppid)
            best_getppid = (end - between) / CALLS;
    }
    FILE *truth = fopen(getenv("TRUTH"), "w");
    if (!truth)
        return 1;
    fprintf(truth, "{\"read\": %f, \"getppid\": %f}\n", best_read, best_getppid);
    return fclose(truth) != 0;
}
