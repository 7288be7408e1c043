/* Reads the time by vsyscall, a call of a fixed address. Exits with 3 if the kernel has no vsyscall page. */
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

static void none(int signal)
{
    (void)signal;
    _exit(3);
}

__attribute__((noinline)) void asks(int count)
{
    volatile char pad[50];
    pad[0] = 1;
    struct timeval time;
    int (*volatile gettimeofday)(struct timeval *, void *) = (void *)0xffffffffff600000;
    for (int i = 0; i < count; i++)
        gettimeofday(&time, 0);
    pad[1]++;
}

int main(int count, char **words)
{
    (void)words;
    signal(SIGSEGV, none);
    asks(count > 1 ? 1 : 700000);
    return 0;
}
