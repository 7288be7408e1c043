/* Calls a function whose first instruction the kernel executes as a single step where it has a probe. */
#include <stdlib.h>
#include <time.h>

static volatile long sink;

__attribute__((noinline)) long stepped(long x)
{
    return x * 3 + 1;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

__attribute__((noinline)) void calls(double seconds)
{
    double until = now() + seconds;
    while (now() < until)
        for (int i = 0; i < 100; i++)
            sink += stepped(i);
}

int main(void)
{
    calls(1.5);
    return 0;
}
