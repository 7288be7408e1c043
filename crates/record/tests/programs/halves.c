/* Three quarters of its processor time in `often`, the rest in `seldom`; prints its time in each, in nanoseconds. */
#include <stdio.h>
#include <time.h>

static long long now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

__attribute__((noinline)) long often(long n)
{
    long sum = 0;
    for (long i = 0; i < n; i++)
        __asm__ volatile("" : "+r"(sum) : "r"(i));
    return sum;
}

__attribute__((noinline)) long seldom(long n)
{
    long sum = 1;
    for (long i = 0; i < n; i++)
        __asm__ volatile("" : "+r"(sum) : "r"(i));
    return sum;
}

int main(void)
{
    long long times[2] = { 0, 0 };
    for (long i = 0; i < 400; i++) {
        long long begin = now();
        often(3000000);
        long long middle = now();
        seldom(1000000);
        times[0] += middle - begin;
        times[1] += now() - middle;
    }
    printf("%lld %lld\n", times[0], times[1]);
    return 3;
}
