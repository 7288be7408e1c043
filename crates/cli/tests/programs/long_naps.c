/* Sleeps for most of a second, again and again. Says "naps" once it does. */
#include <stdio.h>
#include <unistd.h>

__attribute__((noinline)) static void naps(void)
{
    usleep(700000);
    __asm__ volatile("" ::: "memory");
}

int main(void)
{
    puts("naps");
    fflush(stdout);
    for (;;)
        naps();
}
