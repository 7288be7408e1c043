/* Makes calls that are counted below: the parent, five children and a thread. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void times(int count, long number)
{
    for (int i = 0; i < count; i++)
        syscall(number);
}

static void *thread(void *nothing)
{
    times(50, SYS_getuid);
    return nothing;
}

int main(void)
{
    times(1000, SYS_getppid);
    for (int i = 0; i < 7; i++)
        if (syscall(SYS_openat, AT_FDCWD, "/nonexistent/path", O_RDONLY) >= 0 || errno != ENOENT)
            return 1;
    int null = open("/dev/null", O_WRONLY);
    for (int i = 0; i < 3; i++)
        if (write(null, "0123456789", 10) != 10)
            return 2;
    for (int i = 0; i < 5; i++) {
        pid_t child = fork();
        if (!child) {
            times(100, SYS_getppid);
            _exit(0);
        }
        if (waitpid(child, 0, 0) != child)
            return 3;
    }
    pthread_t other;
    if (pthread_create(&other, 0, thread, 0) || pthread_join(other, 0))
        return 4;
    for (int i = 0; i < 3; i++) {
        struct timespec time = { .tv_nsec = 20000000 };
        syscall(SYS_nanosleep, &time, 0);
    }
    /* 4096 page faults. */
    size_t bytes = 4096 * 4096;
    char *memory = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    for (size_t at = 0; at < bytes; at += 4096)
        ((volatile char *)memory)[at] = 1;
    return 9;
}
