// A thread, whose outermost frame belongs to the C library and not to the program.
#include <pthread.h>
#include <stdlib.h>
volatile long sum;

__attribute__((noinline)) long deeper(int depth) { return depth == 0 ? labs(sum) : deeper(depth - 1) + sum; }

static void *run(void *argument) {
    for (int i = 0; i < 20; i++) sum += deeper(i);
    return 0;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, run, 0);
    pthread_join(thread, 0);
    return 0;
}
