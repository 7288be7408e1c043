/* What the Go program calls: C that works, and C that calls Go back. */
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
