// A fixed amount of work on eight threads, twenty calls deep, and what it cost: processor time in milliseconds, and
// ticks in the signal handler. First argument: "off"; "timer": perf events that signal nobody; "signal": they signal a
// handler that does nothing; "plumb": sampled. Second: thousands of rounds.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "plumb_sampler.h"

static const char *mode;
static long rounds;
static volatile unsigned long result;
static volatile long signals;

__attribute__((noinline)) static unsigned long leaf(unsigned long n) {
    unsigned long sum = n;
    for (long i = 0; i < 1000; i++) sum = sum * 6364136223846793005UL + 1442695040888963407UL;
    return sum;
}
__attribute__((noinline)) static unsigned long deeper(int depth, unsigned long n) {
    return (depth ? deeper(depth - 1, n) : leaf(n)) + 1;
}

static void nothing(int signal) { (void)signal; signals++; }

static void own_event(void) {
    struct perf_event_attr attr = {.size = sizeof attr, .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_TASK_CLOCK};
    attr.sample_period = 1000000;
    attr.disabled = attr.exclude_hv = attr.wakeup_events = 1;
    int fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0) { perror("perf_event_open"); exit(1); }
    struct f_owner_ex owner = {F_OWNER_TID, gettid()};
    fcntl(fd, F_SETOWN_EX, &owner);
    fcntl(fd, F_SETSIG, SIGRTMIN + 3);
    if (mode[0] == 's') fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK);
    ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
}

static void *work(void *unused) {
    if (mode[0] == 'p') plumb_sampler_register_thread();
    if (mode[0] == 't' || mode[0] == 's') own_event();
    unsigned long sum = 0;
    for (long i = 0; i < rounds; i++) sum += deeper(20, sum);
    result += sum;
    if (mode[0] == 'p') plumb_sampler_unregister_thread();
    return unused;
}

static double seconds(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    mode = argv[1];
    rounds = atol(argv[2]) * 1000;
    struct sigaction action = {.sa_handler = nothing, .sa_flags = SA_RESTART};
    sigaction(SIGRTMIN + 3, &action, NULL);
    if (mode[0] == 'p' && plumb_sampler_start(NULL) != 0) return 1;
    double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID), wall = seconds(CLOCK_MONOTONIC);
    unsigned long tsc = __rdtsc();
    pthread_t threads[8];
    for (int i = 0; i < 8; i++) pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
    cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    double mhz = (__rdtsc() - tsc) / (seconds(CLOCK_MONOTONIC) - wall) / 1e6;
    struct plumb_sampler_statistics found = {.signals = signals};
    if (mode[0] == 'p') plumb_sampler_statistics(&found);
    printf("%s %.2f %lu %.2f %lu\n", mode, cpu * 1e3, found.signals, found.ticks / mhz / 1e3, found.dropped);
    return 0;
}
