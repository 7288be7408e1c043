/* Opens cycles: opens frequency, or opens period PERIOD. The latter prints two lines of results, the second at twice the period:
 * the count, the number of samples, and the CPU time in nanoseconds. */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define RING (64 << 10)
/* Size of a sample without fields, in bytes. */
#define RECORD 8

static long long cpu_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000000000ll + time.tv_nsec;
}

static unsigned long long count(int fd)
{
    unsigned long long value;
    return read(fd, &value, sizeof(value)) == sizeof(value) ? value : 0;
}

static void spend(int fd, struct perf_event_mmap_page *ring)
{
    unsigned long long before = count(fd), samples = ring->data_head / RECORD;
    long long begin = cpu_ns();
    /* In user code, which any user may sample. */
    while (cpu_ns() < begin + 200000000ll)
        for (volatile int i = 0; i < 100000; i++) {}
    printf("%llu %llu %lld\n", count(fd) - before, ring->data_head / RECORD - samples, cpu_ns() - begin);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    unsigned long long period = argc > 2 ? strtoull(argv[2], 0, 10) : 1000;
    struct perf_event_attr attr = { .type = PERF_TYPE_HARDWARE, .size = sizeof(attr), .config = PERF_COUNT_HW_CPU_CYCLES };
    attr.freq = !strcmp(argv[1], "frequency");
    attr.sample_period = period;
    attr.exclude_kernel = 1;
    attr.exclude_hv = 1;
    int fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
    if (fd < 0) {
        printf("%s\n", errno == ENOENT ? "ENOENT" : strerror(errno));
        return 1;
    }
    struct perf_event_mmap_page *ring = mmap(0, 4096 + RING, PROT_READ, MAP_SHARED, fd, 0);
    if (ring == MAP_FAILED)
        return 3;
    spend(fd, ring);
    period *= 2;
    if (ioctl(fd, PERF_EVENT_IOC_PERIOD, &period))
        return 4;
    spend(fd, ring);
    return 0;
}
