// Makes known numbers of system calls, some of them in children that end at once, and says how long it was on the processor for those that take long.
//
// kernel_calls CHILD: CHILD is another program to run as a child, which is this one under another name.

#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void call(long count)
{
    for (long i = 0; i < count; i++)
        syscall(SYS_getppid);
}

static long long on_cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

int main(int count, char **arguments)
{
    if (count > 2 && !strcmp(arguments[1], "child")) {
        call(70);
        return 0;
    }
    call(100000);
    // The kernel fills 64 KiB with random numbers: nearly all of the time is its own.
    static char buffer[64 << 10];
    long long begin = on_cpu_ns();
    for (int i = 0; i < 2000; i++)
        if (getrandom(buffer, sizeof buffer, 0) != sizeof buffer)
            return 1;
    printf("getrandom_ns=%lld\n", on_cpu_ns() - begin);
    fflush(stdout);
    // Off the processor.
    nanosleep(&(struct timespec){ .tv_nsec = 500000000 }, NULL);
    for (int i = 0; i < 300; i++) {
        pid_t child = fork();
        if (!child && i < 200) {
            call(50);
            _exit(0);
        }
        if (!child) {
            execl(arguments[1], arguments[1], "child", "now", NULL);
            _exit(1);
        }
        int status;
        if (waitpid(child, &status, 0) != child || status)
            return 1;
    }
    return 0;
}
