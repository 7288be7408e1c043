/* Makes system calls whose arguments and results tests know, in a folder of its own, which is its working directory.
 * calls: one call of many kinds. calls getppid N: N calls of one kind. calls every MS TIMES BUFFER: reads /proc TIMES times, every MS
 * milliseconds, and prints the number of calls of getdents64 and the median of their durations in nanoseconds. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <time.h>
#include <unistd.h>

static void files(void)
{
    int fd = open("made", O_RDWR | O_CREAT | O_TRUNC, 0640);
    dprintf(fd, "line one\nline \"two\"\n");
    lseek(fd, 5, SEEK_SET);
    char text[64];
    read(fd, text, sizeof(text));
    pread(fd, text, 4, 0);
    struct stat stat;
    fstat(fd, &stat);
    dup2(fd, 77);
    fcntl(77, F_SETFD, FD_CLOEXEC);
    fcntl(77, F_GETFL);
    struct iovec parts[2] = { { "ab", 2 }, { "cde", 3 } };
    writev(77, parts, 2);
    close(77);
    access("made", R_OK | W_OK);
    open("no such file", O_RDONLY | O_CLOEXEC);
    mkdir("folder", 0755);
    rename("made", "folder/kept");
    unlink("folder/kept");
    rmdir("folder");
    close(fd);
    read(fd, text, 1);
}

static void memory(void)
{
    char *at = mmap(0, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(at, 4096, PROT_READ);
    madvise(at, 1 << 16, MADV_DONTNEED);
    munmap(at, 1 << 16);
}

static void network(void)
{
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    bind(server, (struct sockaddr *)&address, sizeof(address));
    socklen_t length = sizeof(address);
    getsockname(server, (struct sockaddr *)&address, &length);
    listen(server, 5);
    int client = socket(AF_INET, SOCK_STREAM, 0);
    connect(client, (struct sockaddr *)&address, sizeof(address));
    int accepted = accept4(server, 0, 0, SOCK_NONBLOCK);
    send(client, "hello", 5, MSG_NOSIGNAL);
    char text[16];
    recv(accepted, text, sizeof(text), 0);
    struct pollfd polled = { .fd = accepted, .events = POLLIN | POLLOUT };
    poll(&polled, 1, 1000);
    int set = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = { .events = EPOLLIN, .data.u64 = 42 };
    epoll_ctl(set, EPOLL_CTL_ADD, client, &event);
    shutdown(client, SHUT_WR);
    close(client);
    int local = socket(AF_UNIX, SOCK_DGRAM, 0);
    struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "missing.socket" };
    connect(local, (struct sockaddr *)&name, sizeof(name));
}

static void processes(void)
{
    signal(SIGUSR1, SIG_IGN);
    kill(getpid(), SIGUSR1);
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    prctl(PR_SET_NAME, "renamed");
    struct timespec time = { 0, 2000000 };
    nanosleep(&time, 0);
    pid_t child = fork();
    if (!child)
        _exit(3);
    int status;
    waitpid(child, &status, 0);
}

static long long now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ll + time.tv_nsec;
}

static int by_size(const void *one, const void *other)
{
    long long a = *(const long long *)one, b = *(const long long *)other;
    return (a > b) - (a < b);
}

static void every(long ms, long times, long size)
{
    enum { MOST = 1 << 16 };
    static long long taken[MOST];
    char *buffer = malloc(size);
    long long calls = 0;
    for (; times; times--) {
        int fd = open("/proc", O_RDONLY | O_DIRECTORY);
        for (long got = 1; got > 0 && calls < MOST; calls++) {
            long long begin = now();
            got = syscall(SYS_getdents64, fd, buffer, size);
            taken[calls] = now() - begin;
        }
        close(fd);
        usleep(ms * 1000);
    }
    qsort(taken, calls, sizeof(*taken), by_size);
    printf("%lld %lld\n", calls, taken[calls / 2]);
}

int main(int count, char **words)
{
    if (count > 2 && !strcmp(words[1], "getppid")) {
        for (long left = atol(words[2]); left; left--)
            syscall(SYS_getppid);
        return 0;
    }
    if (count > 4 && !strcmp(words[1], "every")) {
        every(atol(words[2]), atol(words[3]), atol(words[4]));
        return 0;
    }
    files();
    memory();
    network();
    processes();
    return 0;
}
