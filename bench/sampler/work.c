// A fixed amount of work on eight threads, twenty calls deep, and what it cost: processor time in milliseconds, and
// ticks in the signal handler. First argument: "off"; "timer": perf events that signal nobody; "signal": they signal a
// handler that does nothing; "plumb": sampled; "posix": sampled by the kernel's tick; "copy": perf events that write
// registers and 8 KiB of stack into rings, which a thread reads; "sleep": a thread for each processor sleeps for a
// millisecond and signals a thread that ran there, by rseq and thread clocks. Second: thousands of rounds.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/rseq.h>
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

enum { THREADS = 8, RING = 64 };  // pages of a ring

// What other threads need to know of a working one.
static struct worker {
    _Atomic int tid;
    _Atomic int fd;
    clockid_t clock;
    volatile struct rseq *rseq;
    struct perf_event_mmap_page *ring;
} workers[THREADS];
static _Atomic int is_over;
static unsigned char sink[16 << 10];

// Reads what events have written, when half a ring is full.
static void *reader(void *unused) {
    while (!is_over) {
        struct pollfd fds[THREADS];
        for (int i = 0; i < THREADS; i++) fds[i] = (struct pollfd){workers[i].fd > 0 ? workers[i].fd : -1, POLLIN, 0};
        poll(fds, THREADS, 20);
        for (int i = 0; i < THREADS; i++) {
            struct perf_event_mmap_page *ring = workers[i].fd > 0 ? workers[i].ring : 0;
            if (!ring) continue;
            unsigned long head = __atomic_load_n(&ring->data_head, __ATOMIC_ACQUIRE), tail = ring->data_tail;
            while (tail < head) {
                struct perf_event_header *record = (void *)((char *)ring + 4096 + tail % (RING * 4096ul));
                unsigned long size = record->size;
                unsigned long room = RING * 4096ul - tail % (RING * 4096ul);
                memcpy(sink, record, size < room ? size : room);
                if (record->type == PERF_RECORD_SAMPLE) signals++;
                tail += size;
            }
            __atomic_store_n(&ring->data_tail, tail, __ATOMIC_RELEASE);
        }
    }
    return unused;
}

static long nanoseconds(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000l + time.tv_nsec;
}

// Wakes up on one processor and signals the thread that has run there since.
static void *sleeper(void *argument) {
    int cpu = (int)(long)argument;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
    long before[THREADS] = {0};
    struct timespec period = {0, 1000000};
    while (!is_over) {
        clock_nanosleep(CLOCK_MONOTONIC, 0, &period, 0);
        int most = -1;
        long longest = 0;
        for (int i = 0; i < THREADS; i++) {
            if (!workers[i].tid || (int)workers[i].rseq->cpu_id != cpu) continue;
            long now = nanoseconds(workers[i].clock);
            if (before[i] && now - before[i] > longest) longest = now - before[i], most = i;
            before[i] = now;
        }
        if (most >= 0) syscall(SYS_tgkill, getpid(), workers[most].tid, SIGRTMIN + 3);
    }
    return 0;
}

static void own_event(struct worker *worker) {
    struct perf_event_attr attr = {.size = sizeof attr, .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_TASK_CLOCK};
    attr.sample_period = 1000000;
    attr.disabled = attr.exclude_hv = attr.wakeup_events = 1;
    if (mode[0] == 'c') {
        attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
        attr.sample_regs_user = 0xff01ff, attr.sample_stack_user = 8192;
        attr.watermark = 1, attr.wakeup_watermark = RING * 4096 / 2;
    }
    int fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0) { perror("perf_event_open"); exit(1); }
    struct f_owner_ex owner = {F_OWNER_TID, gettid()};
    fcntl(fd, F_SETOWN_EX, &owner);
    fcntl(fd, F_SETSIG, SIGRTMIN + 3);
    if (mode[0] == 'c') {
        worker->ring = mmap(0, (RING + 1) * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (worker->ring == MAP_FAILED) { perror("mmap"); exit(1); }
        worker->fd = fd;
    }
    if (mode[1] == 'i') fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK);
    ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
}

static void *work(void *argument) {
    struct worker *worker = argument;
    if (mode[0] == 'p') plumb_sampler_register_thread();
    if (mode[0] == 't' || mode[1] == 'i' || mode[0] == 'c') own_event(worker);
    pthread_getcpuclockid(pthread_self(), &worker->clock);
    worker->rseq = (void *)((char *)__builtin_thread_pointer() + __rseq_offset);
    worker->tid = gettid();
    unsigned long sum = 0;
    for (long i = 0; i < rounds; i++) sum += deeper(20, sum);
    result += sum;
    worker->tid = 0;
    if (mode[0] == 'p') plumb_sampler_unregister_thread();
    return 0;
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
    struct plumb_sampler_options options = {.size = sizeof options, .clock = mode[1] == 'o' ? 2 : 1};
    if (mode[0] == 'p' && plumb_sampler_start(&options) != 0) return 1;
    double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID), wall = seconds(CLOCK_MONOTONIC);
    unsigned long tsc = __rdtsc();
    pthread_t threads[THREADS], helpers[64];
    int processors = sysconf(_SC_NPROCESSORS_ONLN), count = mode[1] == 'l' ? (processors < 64 ? processors : 64) : mode[0] == 'c';
    if (mode[0] == 'p') count = 0;
    for (int i = 0; i < count; i++) pthread_create(&helpers[i], NULL, mode[0] == 'c' ? reader : sleeper, (void *)(long)i);
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, &workers[i]);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    is_over = 1;
    for (int i = 0; i < count; i++) pthread_join(helpers[i], NULL);
    cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    double mhz = (__rdtsc() - tsc) / (seconds(CLOCK_MONOTONIC) - wall) / 1e6;
    struct plumb_sampler_statistics found = {.signals = signals};
    if (mode[0] == 'p') plumb_sampler_statistics(&found);
    printf("%s %.2f %lu %.2f %lu\n", mode, cpu * 1e3, found.signals, found.ticks / mhz / 1e3, found.dropped);
    return 0;
}
