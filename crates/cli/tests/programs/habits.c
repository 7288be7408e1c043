/* Bad habits and their betters, for rules of advice: habits RULE bad|good MILLISECONDS
 * Makes files in its working directory, which must be a directory of its own.
 * For some rules, prints at the end by its own clocks how much of the habit it could have on this machine: "habit: NUMBER". */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static long long until;
static int bad;
static char buffer[1 << 20];

/* Number of calls, for a rule about a rate of calls. */
static long long made;
/* Amount of what another rule is about; -1: none. */
static double had = -1;

/* Monotonic time in nanoseconds, read by the vdso. */
static long long now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ll + time.tv_nsec;
}

#define WHILE_TIME while (now() < until)

/* Computes for a time in nanoseconds. */
static void compute(long long ns)
{
    volatile double x = 1;
    for (long long end = now() + ns; now() < end;)
        for (int i = 0; i < 100; i++)
            x = x * 1.0000001 + 1e-9;
}

static void touch(char *memory, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += 4096)
        memory[at]++;
}

static char *map(size_t bytes)
{
    char *memory = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    return memory;
}

static int file(const char *name, size_t bytes)
{
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
    for (size_t done = 0; done < bytes; done += sizeof(buffer))
        if (write(fd, buffer, sizeof(buffer)) < 0)
            exit(3);
    lseek(fd, 0, SEEK_SET);
    return fd;
}

static void in_threads(int count, void *(*work)(void *))
{
    pthread_t threads[16];
    for (int i = 0; i < count; i++)
        pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], 0);
}

static void brk_churn(void)
{
    const size_t bytes = 4 << 20;
    char *memory = sbrk(bytes);
    WHILE_TIME {
        touch(memory, bytes);
        if (bad) {
            sbrk(-bytes);
            memory = sbrk(bytes);
        }
    }
}

/* Number of rounds, equal to the MILLISECONDS argument: the amount of work is the same for both habits. */
static long rounds;

static void brk_rounds(void)
{
    const size_t bytes = 4 << 20;
    char *memory = sbrk(bytes);
    volatile double x = 1;
    for (long i = 0; i < rounds; i++) {
        touch(memory, bytes);
        for (int k = 0; k < 200000; k++)
            x = x * 1.0000001 + 1e-9;
        if (bad) {
            sbrk(-bytes);
            memory = sbrk(bytes);
        }
    }
}

static void mmap_churn(void)
{
    const size_t bytes = 256 << 10;
    char *memory = map(bytes);
    WHILE_TIME {
        touch(memory, bytes);
        if (bad) {
            munmap(memory, bytes);
            memory = map(bytes);
        }
    }
}

static void page_faults(void)
{
    size_t bytes = 2 << 20;
    WHILE_TIME {
        if (bad) {
            char *memory = map(bytes);
            touch(memory, bytes);
            munmap(memory, bytes);
        } else {
            compute(1000000);
        }
    }
}

static void huge_pages(void)
{
    const size_t bytes = 64 << 20, huge = 2 << 20;
    WHILE_TIME {
        char *memory = mmap(0, bytes + huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        char *aligned = (char *)(((size_t)memory + huge - 1) & ~(huge - 1));
        madvise(aligned, bytes, bad ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
        touch(aligned, bytes);
        munmap(memory, bytes + huge);
    }
}

static void purged(void)
{
    const size_t bytes = 1 << 20;
    char *memory = map(bytes);
    WHILE_TIME {
        touch(memory, bytes);
        if (bad)
            madvise(memory, bytes, MADV_DONTNEED);
    }
    madvise(memory, bytes, MADV_DONTNEED);
}

static void *protect(void *unused)
{
    char *memory = map(1 << 16);
    WHILE_TIME {
        mprotect(memory, 1 << 16, PROT_READ);
        mprotect(memory, 1 << 16, PROT_READ | PROT_WRITE);
        memory[0] = 1;
        if (!bad)
            compute(20000000);
    }
    return unused;
}

static void mprotect_storm(void)
{
    in_threads(2, protect);
}

static void small_file_io(void)
{
    int fd = file("small", 1 << 20);
    size_t each = bad ? 16 : 65536;
    WHILE_TIME
        for (off_t at = 0; at < 1 << 20 && now() < until; at += each, made++)
            if (pread(fd, buffer, each, at) < 0)
                exit(3);
}

static void seek_then_read(void)
{
    int fd = file("seek", 1 << 20);
    WHILE_TIME
        for (off_t at = 0; at < 1 << 20; at += 8192) {
            if (bad)
                lseek(fd, at, SEEK_SET);
            if ((bad ? read(fd, buffer, 512) : pread(fd, buffer, 512, at)) < 0)
                exit(3);
        }
}

static void copy_loop(void)
{
    int from = file("from", 8 << 20);
    WHILE_TIME {
        int to = file("to", 0);
        lseek(from, 0, SEEK_SET);
        if (bad)
            for (ssize_t bytes; (bytes = read(from, buffer, 65536)) > 0;)
                bytes = write(to, buffer, bytes);
        else
            while (copy_file_range(from, 0, to, 0, 8 << 20, 0) > 0) {}
        close(to);
    }
}

static void fsync_wait(void)
{
    int fd = file("sync", 0);
    WHILE_TIME {
        if (pwrite(fd, buffer, 512, 0) < 0)
            exit(3);
        if (bad)
            fsync(fd);
        else
            compute(1000000);
    }
}

static void search_path(void)
{
    char name[64];
    int here = file("there", 0);
    for (int i = 0; now() < until; i++) {
        snprintf(name, sizeof(name), bad ? "./no-such-%d/header.h" : "there", i % 50);
        int fd = open(name, O_RDONLY);
        if (fd >= 0)
            close(fd);
    }
    close(here);
}

static void reopened(void)
{
    int fd = file("config", 1 << 20);
    WHILE_TIME {
        if (bad) {
            close(fd);
            fd = open("config", O_RDONLY);
        }
        if (pread(fd, buffer, 64, 0) < 0)
            exit(3);
    }
}

static void small_listing(void)
{
    char name[64];
    mkdir("list", 0755);
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof(name), "list/entry-number-%d", i);
        close(open(name, O_CREAT | O_WRONLY, 0644));
    }
    int fd = open("list", O_RDONLY | O_DIRECTORY);
    WHILE_TIME {
        lseek(fd, 0, SEEK_SET);
        while (syscall(SYS_getdents64, fd, buffer, bad ? 256 : 32768) > 0) {}
    }
}

static void process_scan(void)
{
    int fd = open(bad ? "/proc" : "/proc/self/task", O_RDONLY | O_DIRECTORY);
    WHILE_TIME {
        lseek(fd, 0, SEEK_SET);
        while (syscall(SYS_getdents64, fd, buffer, 32768) > 0) {}
    }
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static pthread_mutex_t results = PTHREAD_MUTEX_INITIALIZER;

static long long own_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000000000ll + time.tv_nsec;
}

static void *contend(void *unused)
{
    long long begin = now(), waited = 0;
    WHILE_TIME {
        long long asked = now();
        if (bad)
            pthread_mutex_lock(&mutex);
        waited += now() - asked;
        compute(200000);
        if (bad)
            pthread_mutex_unlock(&mutex);
        /* Otherwise the thread that had the lock would get it again each time. */
        compute(100000);
    }
    /* The rule is about threads that run and wait: what a thread had of both. */
    double span = now() - begin, share = (waited < own_ns() ? waited : own_ns()) / span;
    pthread_mutex_lock(&results);
    had = share > had ? share : had;
    pthread_mutex_unlock(&results);
    return unused;
}

/* The lock is always held: of each 600 us a thread holds it for 200, works for 100 and waits for 300, whoever is woken when. With two
 * threads it would wait for 100 of 400, and for less where it is woken late. */
static void contention(void)
{
    in_threads(3, contend);
}

static void yields(void)
{
    /* Measures CPU time, not elapsed time: on a busy machine, most of the elapsed time belongs to other processes. */
    for (clock_t end = clock() + CLOCKS_PER_SEC / 10; clock() < end;)
        for (int i = 0; i < 1000; i++)
            if (bad)
                sched_yield();
            else
                compute(1000);
}

static void *nap(void *unused)
{
    struct timespec time = { .tv_nsec = bad ? 20000 : 50000000 };
    WHILE_TIME
        nanosleep(&time, 0);
    return unused;
}

static void polling_sleep(void)
{
    in_threads(4, nap);
}

/* Sleeps while it holds the lock, so that others wait; or without the lock, so that they sleep too. */
static void *doze(void *unused)
{
    struct timespec time = { .tv_nsec = 2000000 };
    WHILE_TIME {
        pthread_mutex_lock(&mutex);
        if (bad)
            nanosleep(&time, 0);
        pthread_mutex_unlock(&mutex);
        if (!bad)
            nanosleep(&time, 0);
    }
    return unused;
}

static void sleep_under_lock(void)
{
    in_threads(4, doze);
}

static void clocks(void)
{
    struct timespec time;
    WHILE_TIME
        for (int i = 0; i < 1000; i++, made++)
            if (bad)
                syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &time);
            else
                clock_gettime(CLOCK_MONOTONIC, &time);
}

static void poll_many(void)
{
    int count = bad ? 256 : 2;
    struct pollfd files[256];
    for (int i = 0; i < count; i++)
        files[i] = (struct pollfd){ .fd = eventfd(i == 0, 0), .events = POLLIN };
    WHILE_TIME
        poll(files, count, 100);
}

static void busy_polling(void)
{
    struct epoll_event event;
    int fd = epoll_create1(0);
    WHILE_TIME
        epoll_wait(fd, &event, 1, bad ? 0 : 5);
}

static void one_event(void)
{
    struct epoll_event events[16] = { { .events = EPOLLIN } };
    int fd = epoll_create1(0), count = bad ? 1 : 8;
    for (int i = 0; i < count; i++)
        epoll_ctl(fd, EPOLL_CTL_ADD, eventfd(1, 0), &events[0]);
    /* Nobody reads from them, so they stay ready. */
    WHILE_TIME
        for (int i = 0; i < 100; i++, made++)
            epoll_wait(fd, events, 16, -1);
}

static void not_ready(void)
{
    int fd = bad ? eventfd(0, EFD_NONBLOCK) : open("/dev/zero", O_RDONLY);
    WHILE_TIME
        for (int i = 0; i < 100; i++)
            if (read(fd, buffer, 8) < 0 && errno != EAGAIN)
                exit(3);
}

static void ioctls(void)
{
    struct termios settings;
    int fd = open("/dev/null", O_RDWR);
    WHILE_TIME {
        ioctl(fd, TCGETS, &settings);
        if (!bad)
            compute(100000);
    }
}

static void small_messages(void)
{
    int pair[2];
    socketpair(AF_UNIX, SOCK_DGRAM, 0, pair);
    size_t bytes = bad ? 16 : 16384;
    WHILE_TIME
        /* Two calls each, on two sockets. */
        for (int i = 0; i < 10; i++, made++)
            if (send(pair[0], buffer, bytes, 0) < 0 || recv(pair[1], buffer, bytes, 0) < 0)
                exit(3);
}

/* A request of a head and a body over TCP, one by one or together, and an answer. */
static void *answer(void *listener)
{
    int fd = accept(*(int *)listener, 0, 0);
    char request[8];
    while (fd >= 0 && recv(fd, request, sizeof(request), MSG_WAITALL) == sizeof(request) && send(fd, request, 4, 0) == 4) {}
    close(fd);
    return 0;
}

static void delayed_ack(void)
{
    int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof(address);
    pthread_t thread;
    if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 1) || getsockname(listener, (struct sockaddr *)&address, &length))
        exit(3);
    pthread_create(&thread, 0, answer, &listener);
    if (connect(fd, (struct sockaddr *)&address, length))
        exit(3);
    WHILE_TIME {
        if (bad ? send(fd, buffer, 4, 0) < 0 || send(fd, buffer, 4, 0) < 0 : send(fd, buffer, 8, 0) < 0)
            exit(3);
        if (recv(fd, buffer, 4, 0) < 0)
            exit(3);
        if (!bad)
            compute(100000);
    }
    close(fd);
    pthread_join(thread, 0);
}

/* Requests of 40 bytes over TCP, each answered by 5 bytes: one at a time, or 16 together. */
static void *serve(void *listener)
{
    int fd = accept(*(int *)listener, 0, 0);
    char requests[640];
    ssize_t got;
    while ((got = read(fd, requests, sizeof(requests))) > 0 && write(fd, requests, got / 8) > 0) {}
    close(fd);
    return 0;
}

static void one_request(void)
{
    int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof(address);
    pthread_t thread;
    if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 1) || getsockname(listener, (struct sockaddr *)&address, &length))
        exit(3);
    pthread_create(&thread, 0, serve, &listener);
    if (connect(fd, (struct sockaddr *)&address, length))
        exit(3);
    size_t bytes = bad ? 40 : 640;
    WHILE_TIME {
        if (write(fd, buffer, bytes) < 0)
            exit(3);
        for (size_t left = bytes / 8; left;) {
            ssize_t got = read(fd, buffer, left);
            if (got <= 0)
                exit(3);
            left -= got;
        }
        /* Two here, and two there. */
        made += 4;
    }
    close(fd);
    pthread_join(thread, 0);
}

static void many_calls(void)
{
    int fd = open("/dev/zero", O_RDONLY);
    WHILE_TIME
        for (int i = 0; i < 10; i++, made++)
            if (read(fd, buffer, bad ? 1 : sizeof(buffer)) < 0)
                exit(3);
}

static void identity(void)
{
    WHILE_TIME {
        syscall(SYS_getpid);
        made++;
        if (!bad)
            compute(1000000);
    }
}

static void sigmasks(void)
{
    sigset_t set, old;
    sigemptyset(&set);
    WHILE_TIME {
        sigprocmask(SIG_SETMASK, &set, &old);
        made++;
        if (!bad)
            compute(1000000);
    }
}

static const struct {
    const char *rule;
    void (*work)(void);
} habits[] = {
    { "brk-churn", brk_churn },
    { "brk-rounds", brk_rounds },
    { "mmap-churn", mmap_churn },
    { "page-faults", page_faults },
    { "huge-pages", huge_pages },
    { "purged-too-soon", purged },
    { "mprotect-storm", mprotect_storm },
    { "small-file-io", small_file_io },
    { "seek-then-read", seek_then_read },
    { "copy-loop", copy_loop },
    { "fsync-wait", fsync_wait },
    { "search-path-storm", search_path },
    { "reopened-file", reopened },
    { "small-listing-buffer", small_listing },
    { "process-scan", process_scan },
    { "lock-contention", contention },
    { "yield-loop", yields },
    { "polling-sleep", polling_sleep },
    { "sleep-under-lock", sleep_under_lock },
    { "clock-by-syscall", clocks },
    { "poll-of-many", poll_many },
    { "busy-polling", busy_polling },
    { "one-event-a-wait", one_event },
    { "read-without-readiness", not_ready },
    { "ioctl-cost", ioctls },
    { "small-messages", small_messages },
    { "delayed-ack", delayed_ack },
    { "one-request-in-flight", one_request },
    { "very-many-calls", many_calls },
    { "repeated-identity", identity },
    { "sigmask-storm", sigmasks },
};

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    bad = !strcmp(argv[2], "bad");
    rounds = atol(argv[3]);
    long long begin = now();
    until = begin + atoll(argv[3]) * 1000000ll;
    for (size_t i = 0; i < sizeof(habits) / sizeof(habits[0]); i++)
        if (!strcmp(habits[i].rule, argv[1])) {
            habits[i].work();
            if (made)
                had = made * 1e9 / (now() - begin);
            if (had >= 0)
                fprintf(stderr, "habit: %f\n", had);
            return 0;
        }
    return 2;
}
