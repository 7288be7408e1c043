// One thread waits for what never comes, another sleeps 20 ms at a time.
#include <pthread.h>
#include <time.h>
#include <unistd.h>

static int ends[2];

__attribute__((noinline)) static void *waits_for_ever(void *nothing) {
    char byte;
    return read(ends[0], &byte, 1) ? nothing : 0;
}

__attribute__((noinline)) static void naps(void) {
    struct timespec time = {0, 20000000};
    nanosleep(&time, 0);
}

int main(void) {
    pthread_t thread;
    if (pipe(ends) || pthread_create(&thread, 0, waits_for_ever, 0)) return 1;
    for (;;) naps();
}
