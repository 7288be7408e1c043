/* Works in a function whose return may be probed, called by another that has a frame of its own. */
#include <time.h>

static volatile unsigned long sink;

__attribute__((noinline)) void leaf(void)
{
    for (int i = 0; i < 100000; i++)
        sink += i;
}

__attribute__((noinline)) void probed(double until)
{
    volatile char pad[99];
    pad[0] = 1;
    struct timespec t;
    do {
        leaf();
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    } while (t.tv_sec + t.tv_nsec * 1e-9 < until);
    sink += pad[0];
}

__attribute__((noinline)) void outer(double until)
{
    volatile char pad[55];
    pad[0] = 1;
    probed(until);
    sink += pad[0];
}

/* A probed function that calls another one. */
__attribute__((noinline)) void twice(double until)
{
    volatile char pad[33];
    pad[0] = 1;
    outer(until);
    sink += pad[0];
}

int main(void)
{
    for (int i = 1; i <= 20; i++)
        twice(0.05 * i);
    return 0;
}
