/* Spends known time in user code and in the kernel, in two threads of known names, and prints what it did:
 * nanoseconds of processor time in user code, in calls, and of each thread, and the calls.
 * spends MILLISECONDS PAGES */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long long wanted, user_ns, call_ns, calls;
static char buffer[1 << 20];

static long long now(void)
{
    struct timespec time;
    /* This clock is read by a system call. */
    __sync_fetch_and_add(&calls, 1);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000000000ll + time.tv_nsec;
}

static void *computes(void *unused)
{
    prctl(PR_SET_NAME, "computes");
    long long begin = now();
    volatile double x = 1;
    while (now() - begin < wanted)
        for (int i = 0; i < 100000; i++)
            x = x * 1.0000001 + 1e-9;
    user_ns = now() - begin;
    return unused;
}

/* Nearly all of a call's time is the kernel's: it makes a million random bytes. */
static void *asks(void *unused)
{
    prctl(PR_SET_NAME, "asks");
    long long begin = now();
    while (now() - begin < wanted / 2) {
        syscall(SYS_getrandom, buffer, sizeof(buffer), 0);
        __sync_fetch_and_add(&calls, 1);
    }
    call_ns = now() - begin;
    return unused;
}

int main(int argc, char **argv)
{
    wanted = (argc > 1 ? atoll(argv[1]) : 300) * 1000000ll;
    long pages = argc > 2 ? atol(argv[2]) : 0;
    pthread_t threads[2];
    pthread_create(&threads[0], 0, computes, 0);
    pthread_create(&threads[1], 0, asks, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    for (int i = 0; i < 20000; i++)
        syscall(SYS_getppid);
    calls += 20000;
    if (pages) {
        char *memory = mmap(0, pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        madvise(memory, pages * 4096, MADV_NOHUGEPAGE);
        for (long page = 0; page < pages; page++)
            memory[page * 4096] = 1;
    }
    printf("%lld %lld %lld\n", user_ns, call_ns, calls);
    return 0;
}
