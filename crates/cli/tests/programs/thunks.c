/* Calls through pointers, by thunks inside the functions that call: GCC has wrong rules behind these. */
#include <time.h>

static volatile long sink;
typedef long (*function)(long);

__attribute__((noinline)) long leaf(long n)
{
    for (int i = 0; i < 200; i++)
        sink += n;
    return n;
}

static function volatile chosen = leaf;

__attribute__((noinline)) long calls(long n)
{
    volatile char room[100];
    for (int i = 0; i < (int)sizeof(room); i++)
        room[i] = 0;
    long first = chosen(n);
    return first + chosen(n + 1) + room[0];
}

int main(void)
{
    while (clock() < CLOCKS_PER_SEC)
        for (long i = 0; i < 100; i++)
            sink += calls(i);
    return 0;
}
