// Two processes and two threads, of which one function touches memory: parts that a selection may take.
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int pthread_setname_np(pthread_t thread, const char *name);

static volatile unsigned long sum;

// Processor time of this thread, so that a busy machine gives as many samples.
static double used(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

__attribute__((noinline)) static void first(double seconds) {
    for (double end = used() + seconds; used() < end;)
        for (unsigned long i = 0; i < 100000; i++) sum += i;
}

__attribute__((noinline)) static void second(double seconds) {
    for (double end = used() + seconds; used() < end;) {
        char *memory = mmap(0, 1 << 22, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memset(memory, 1, 1 << 22);
        munmap(memory, 1 << 22);
    }
}

static void *worker(void *nothing) {
    pthread_setname_np(pthread_self(), "worker");
    first(0.1);
    return nothing;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, worker, 0);
    first(0.1);
    pthread_join(thread, 0);
    if (fork() == 0) {
        second(0.1);
        _exit(0);
    }
    wait(0);
    second(0.1);
    return 0;
}
