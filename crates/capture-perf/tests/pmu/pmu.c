/* A preload for tests: the machine seems to have another PMU than it has.
 *
 *   cc -O2 -shared -fPIC -o hide.so pmu.c            no PMU: hardware events are not there (ENOENT)
 *   cc -O2 -shared -fPIC -DFAKE -o fake.so pmu.c     a double of one, also where there is none
 *   LD_PRELOAD=./fake.so plumb record -e cycles ...
 *
 * It takes the place of syscall(3), ioctl(2) and read(2) in dynamically linked programs, which is how perf_event_open(2) is called
 * by all that know no better: there is no wrapper for it in the C library.
 *
 * The double counts by the clock: each event happens so many times in a nanosecond of its thread's processor time (RATES), and is
 * the software event cpu-clock to the kernel. Periods are scaled to nanoseconds when an event is opened and when its period is set,
 * counts are scaled back when they are read. What the kernel itself writes is not: PERF_SAMPLE_PERIOD of a sample says nanoseconds.
 * PMU_MHZ=1000 in the environment makes a cycle a nanosecond, and periods of cycles right there as well.
 *
 * A hardware event in frequency mode is a bug in whoever opens it: it begins at a period of 1, and on a virtual PMU the kernel may
 * never get away from there. So the double ends the program (SIGABRT), having said so. perf does it, and is told that there is no PMU.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef long (*syscall_function)(long, ...);

/* The C library's. Looked for before the program's first line, or before that by who calls us even earlier. */
static syscall_function next_syscall;

__attribute__((constructor)) static void find_next(void)
{
    next_syscall = (syscall_function)dlsym(RTLD_NEXT, "syscall");
}

static syscall_function next(void)
{
    if (!next_syscall)
        find_next();
    return next_syscall;
}

static int is_hardware(const struct perf_event_attr *attr)
{
    return attr->type == PERF_TYPE_HARDWARE || attr->type == PERF_TYPE_HW_CACHE || attr->type == PERF_TYPE_RAW;
}

#ifdef FAKE

/* The shortest that the kernel's timer takes; shorter ones it makes as long, and so do we, to know it. */
#define LEAST_NS 10000
/* Events are told apart by their descriptors. */
#define MOST_FILES 65536

/* How often an event happens for each cycle, in thousandths. Those of the generic events that are not here are as branch misses. */
static const unsigned RATES[PERF_COUNT_HW_MAX] = {
    [PERF_COUNT_HW_CPU_CYCLES] = 1000,
    [PERF_COUNT_HW_INSTRUCTIONS] = 1500,
    [PERF_COUNT_HW_CACHE_REFERENCES] = 20,
    [PERF_COUNT_HW_CACHE_MISSES] = 4,
    [PERF_COUNT_HW_BRANCH_INSTRUCTIONS] = 250,
    [PERF_COUNT_HW_BRANCH_MISSES] = 5,
    [PERF_COUNT_HW_BUS_CYCLES] = 40,
    [PERF_COUNT_HW_REF_CPU_CYCLES] = 1000,
};

/* What happens in a millisecond, by descriptor; 0: not an event of ours. */
static uint64_t rates[MOST_FILES];

static uint64_t rate_of(const struct perf_event_attr *attr)
{
    const char *mhz = getenv("PMU_MHZ");
    uint64_t cycles = (mhz && atoi(mhz) > 0 ? atoi(mhz) : 2600) * 1000ull, each = 0;
    /* The upper half says which of several PMUs. */
    uint64_t config = attr->config & 0xffffffff;
    if (attr->type == PERF_TYPE_HARDWARE && config < PERF_COUNT_HW_MAX)
        each = RATES[config];
    return cycles * (each ? each : RATES[PERF_COUNT_HW_BRANCH_MISSES]) / 1000;
}

/* The period in nanoseconds: at least the kernel's least, and no more than fits (its sign bit has to be clear). */
static uint64_t to_ns(uint64_t period, uint64_t rate)
{
    unsigned __int128 ns = (unsigned __int128)period * 1000000 / rate;
    return ns < LEAST_NS ? LEAST_NS : ns > INT64_MAX ? INT64_MAX : (uint64_t)ns;
}

static long open_double(const struct perf_event_attr *asked, long pid, long cpu, long group, long flags)
{
    /* As many bytes as it says: it may know more fields than our headers. */
    union {
        struct perf_event_attr attr;
        char bytes[512];
    } copy = { .bytes = { 0 } };
    if (asked->freq) {
        fprintf(stderr, "pmu: %s opened a hardware event (type %u, config %#llx) in frequency mode\n",
            program_invocation_short_name, asked->type, (unsigned long long)asked->config);
        abort();
    }
    uint64_t rate = rate_of(asked);
    uint64_t size = asked->size ? asked->size : PERF_ATTR_SIZE_VER0;
    memcpy(copy.bytes, asked, size < sizeof(copy) ? size : sizeof(copy));
    struct perf_event_attr *attr = &copy.attr;
    attr->type = PERF_TYPE_SOFTWARE;
    attr->config = PERF_COUNT_SW_CPU_CLOCK;
    attr->config1 = attr->config2 = 0;
    attr->precise_ip = 0;
    if (attr->sample_period)
        attr->sample_period = to_ns(attr->sample_period, rate);
    long fd = next()(SYS_perf_event_open, attr, pid, cpu, group, flags);
    if (fd >= 0 && fd < MOST_FILES)
        rates[fd] = rate;
    return fd;
}

int ioctl(int fd, unsigned long request, ...)
{
    va_list list;
    va_start(list, request);
    void *argument = va_arg(list, void *);
    va_end(list);
    uint64_t period;
    if (request == PERF_EVENT_IOC_PERIOD && fd >= 0 && fd < MOST_FILES && rates[fd] && argument) {
        period = to_ns(*(uint64_t *)argument, rates[fd]);
        argument = &period;
    }
    return next()(SYS_ioctl, fd, request, argument);
}

/* A count is the first word of what an event without a group is read as. */
ssize_t read(int fd, void *buffer, size_t size)
{
    ssize_t bytes = next()(SYS_read, fd, buffer, size);
    if (bytes >= (ssize_t)sizeof(uint64_t) && fd >= 0 && fd < MOST_FILES && rates[fd]) {
        uint64_t count;
        memcpy(&count, buffer, sizeof(count));
        count = (unsigned __int128)count * rates[fd] / 1000000;
        memcpy(buffer, &count, sizeof(count));
    }
    return bytes;
}

/* The number may be another file's next. */
int close(int fd)
{
    if (fd >= 0 && fd < MOST_FILES)
        rates[fd] = 0;
    return next()(SYS_close, fd);
}

#endif

long syscall(long number, ...)
{
    va_list list;
    va_start(list, number);
    long a[6];
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_perf_event_open && a[0] && is_hardware((struct perf_event_attr *)a[0])) {
#ifdef FAKE
        if (strncmp(program_invocation_short_name, "perf", 4))
            return open_double((struct perf_event_attr *)a[0], a[1], a[2], a[3], a[4]);
#endif
        errno = ENOENT;
        return -1;
    }
    return next()(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
