// Calls through a function whose returns are traced, twice on each stack. Waits for a signal, or, with an argument, spins for some
// seconds of its CPU time, and makes a system call now and then.
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static volatile unsigned long sum;
static double limit;

static double cpu(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

__attribute__((noinline)) void leaf(void) {
    if (limit == 0) {
        puts("ready");
        fflush(stdout);
        for (;;) pause();
    }
    for (int i = 0; i < 100000; i++) sum += i;
    sched_yield();
}

void between(int depth);

// A frame of its own, so that its caller is not simply above the return address.
__attribute__((noinline)) void probed(int depth) {
    volatile char room[99];
    room[0] = depth;
    if (depth == 0) leaf();
    else between(depth - 1);
    sum += room[0];
}

__attribute__((noinline)) void between(int depth) {
    probed(depth);
    sum++;
}

__attribute__((noinline)) void outer(void) {
    volatile char room[55];
    room[0] = 1;
    probed(1);
    sum += room[0];
}

int main(int argc, char **argv) {
    limit = argc > 1 ? atof(argv[1]) : 0;
    do outer();
    while (cpu() < limit);
    return 0;
}
