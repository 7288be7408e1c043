/* Functions called by the Go program: one that works, and one that calls back into Go. */
#include <stdint.h>

static volatile uint64_t sink;
extern void goBack(uint64_t n);

__attribute__((noinline)) static void c_leaf(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        sink += i * i;
}

__attribute__((noinline)) void c_work(uint64_t n)
{
    c_leaf(n);
    sink++;
}

__attribute__((noinline)) void c_back(uint64_t n)
{
    goBack(n);
    sink++;
}
