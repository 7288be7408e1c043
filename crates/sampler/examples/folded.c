/* A program that profiles two of its threads and writes folded stacks to standard output.
 * cc -O2 folded.c -I../include -L TARGET -lplumb_sampler -lpthread */
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "plumb_sampler.h"

static volatile unsigned long result;

__attribute__((noinline)) void remainders(unsigned long n) {
    for (unsigned long i = 1; i < n; i++) result += n % i;
}

static void *work(void *unused) {
    struct timespec time;
    if (plumb_sampler_register_thread() != 0) return unused;
    do {
        remainders(100000);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    } while (time.tv_sec < 1);
    return unused;
}

int main(void) {
    if (plumb_sampler_start(NULL) != 0) return 1;
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    fprintf(stderr, "%ld samples\n", (long)plumb_sampler_write_folded(1));
    return plumb_sampler_stop() != 0;
}
