/* The main thread ends, another works on. */
#include <pthread.h>
#include <unistd.h>

static volatile unsigned long sink;

__attribute__((noinline)) void leaf(void)
{
    for (int i = 0; i < 100000; i++)
        sink += i;
}

__attribute__((noinline)) void middle(void)
{
    volatile char pad[99];
    pad[0] = 1;
    for (;;) {
        leaf();
        sink += pad[0];
    }
}

static void *run(void *unused)
{
    middle();
    return unused;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, run, 0);
    alarm(300);
    pthread_exit(0);
}
