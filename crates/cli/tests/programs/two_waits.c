/* Waits for its input, then sleeps for long. */
#include <unistd.h>

__attribute__((noinline)) static int waits_for_input(void)
{
    char byte;
    return read(0, &byte, 1) == 1;
}

__attribute__((noinline)) static int sleeps_then(void)
{
    return sleep(60) == 0;
}

int main(void)
{
    int had_input = waits_for_input();
    return sleeps_then() + had_input;
}
