/* Calls a null pointer, or with the argument "data" the address of data, and works in the handler of the signal that it gets for that. With a
 * second argument the handler has a stack of its own. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

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

static char data[64];

int main(int count, char **arguments)
{
    struct sigaction action = { .sa_handler = handler, .sa_flags = count > 2 ? SA_ONSTACK : 0 };
    stack_t own = { .ss_sp = malloc(1 << 16), .ss_size = 1 << 16 };
    if (count > 2)
        sigaltstack(&own, 0);
    if (count > 1 && !strcmp(arguments[1], "data"))
        memcpy((void *)&nothing, &(char *){ data }, sizeof nothing);
    sigaction(SIGSEGV, &action, 0);
    calls_nothing();
    return 0;
}
