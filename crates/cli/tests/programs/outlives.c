/* A child that waits for longer than its parent runs. */
#include <unistd.h>

static void __attribute__((noinline)) sleeps_on(void)
{
    sleep(5);
    __asm__ volatile("");
}

int main(void)
{
    if (!fork()) {
        /* A reader of the parent's output need not wait for the child. */
        close(0), close(1), close(2);
        sleeps_on();
        return 0;
    }
    usleep(700000);
    return 0;
}
