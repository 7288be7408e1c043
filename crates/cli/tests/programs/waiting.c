// Threads that wait at known places: below some calls, in a signal handler on a stack of its own, below a large frame.
// When all are there a line is printed. A counter in shared memory grows while one thread runs, if that is asked for.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static pthread_barrier_t ready;
static volatile unsigned long *counter;
// Never set; without it the compiler sees that nothing ever returns, and drops what callers do afterwards.
static volatile int end;

__attribute__((noinline)) static void wait_for_ever(void) {
    pthread_barrier_wait(&ready);
    while (!end) pause();
}
__attribute__((noinline)) static long inner(long n) { wait_for_ever(); return n + 1; }
__attribute__((noinline)) static long middle(long n) { return inner(n) * 3; }
static inline __attribute__((always_inline)) long outer(long n) { return middle(n) + 7; }
static void *calls(void *arg) { return (void *)outer((long)arg); }

static void handler(int signal) { (void)signal; wait_for_ever(); (void)end; }
__attribute__((noinline)) static long interrupted(void) { raise(SIGUSR1); return 1; }
static void *on_own_stack(void *arg) {
    stack_t own = {.ss_sp = malloc(65536), .ss_size = 65536};
    sigaltstack(&own, NULL);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    return (void *)(interrupted() + (long)arg);
}

__attribute__((noinline)) static long large(long n) {
    volatile char room[3 << 20];
    room[n] = 1;
    wait_for_ever();
    return room[n];
}
static void *deep(void *arg) { return (void *)(large((long)arg) + 1); }

static void *count(void *arg) {
    pthread_barrier_wait(&ready);
    for (;;) ++*counter;
    return arg;
}

int main(int argc, char **argv) {
    int counts = argc > 1;
    pthread_barrier_init(&ready, NULL, 5 + counts);
    pthread_t threads[5];
    for (long i = 0; i < 2; i++) pthread_create(&threads[i], NULL, calls, (void *)i);
    pthread_create(&threads[2], NULL, on_own_stack, NULL);
    pthread_create(&threads[3], NULL, deep, NULL);
    if (counts) {
        int file = open(argv[1], O_RDWR | O_CREAT, 0600);
        if (file < 0 || ftruncate(file, 4096)) return 1;
        counter = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        pthread_create(&threads[4], NULL, count, NULL);
    }
    pthread_barrier_wait(&ready);
    puts("ready");
    fflush(stdout);
    pthread_join(threads[0], NULL);
    return 0;
}
