/* Three functions that take 60, 30 and 10 percent of the time, for so many seconds. */
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#define UNIT 2000000

static volatile uint32_t sink;

__attribute__((noinline)) uint32_t sixty(uint32_t x)
{
    for (int i = 0; i < 6 * UNIT; i++)
        x = x * 1664525u + 1013904223u;
    return x;
}

__attribute__((noinline)) uint32_t thirty(uint32_t x)
{
    for (int i = 0; i < 3 * UNIT; i++)
        x = x * 1664525u + 1013904223u;
    return x + 1;
}

__attribute__((noinline)) uint32_t ten(uint32_t x)
{
    for (int i = 0; i < UNIT; i++)
        x = x * 1664525u + 1013904223u;
    return x + 2;
}

int main(int count, char **words)
{
    time_t end = time(NULL) + (count > 1 ? atoi(words[1]) : 3);
    uint32_t x = 1;
    while (time(NULL) < end)
        x = ten(thirty(sixty(x)));
    sink = x;
    return 0;
}
