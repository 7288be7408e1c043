/* Calls a null pointer, and works in the handler of the signal that it gets for that. */
#include <signal.h>
#include <stdlib.h>

volatile unsigned long sink;
void (*volatile nothing)(void);

__attribute__((noinline)) void spin(void)
{
    for (long i = 0; i < 400000000; i++)
        sink += i;
}

static void handler(int signal)
{
    (void)signal;
    spin();
    _Exit(0);
}

__attribute__((noinline)) void calls_nothing(void)
{
    nothing();
    sink++;
}

int main(void)
{
    signal(SIGSEGV, handler);
    calls_nothing();
    return 0;
}
