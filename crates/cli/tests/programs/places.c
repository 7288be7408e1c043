/* Passes places a known number of times from known functions: the system call brk, and the function probed.
 * places FIRST SECOND THIRD [WAIT_MS]: with WAIT_MS, two passes with one call of brk each, and a wait after each pass. Then FIRST, SECOND and
 * THIRD calls of brk from three functions, and 100 calls of probed. The same again in a child, in the program that the child execs, and in
 * another thread.
 * places calls: some system calls, each once more than the one before. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) void probed(long i)
{
    __asm__ volatile("" ::"r"(i));
}

static long brk_now(void)
{
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(SYS_brk), "D"(0) : "rcx", "r11", "memory");
    return result;
}

#define CALLER(name)                                                                                                   \
    __attribute__((noinline)) void name(long times)                                                                    \
    {                                                                                                                  \
        for (long i = 0; i < times; i++)                                                                               \
            brk_now();                                                                                                 \
        __asm__ volatile("");                                                                                          \
    }

CALLER(first)
CALLER(second)
CALLER(third)

struct times {
    long first, second, third;
};

__attribute__((noinline)) void pass(struct times *times)
{
    first(times->first);
    second(times->second);
    third(times->third);
    for (long i = 0; i < 100; i++)
        probed(i);
    __asm__ volatile("");
}

__attribute__((noinline)) void *in_thread(void *times)
{
    pass(times);
    __asm__ volatile("");
    return 0;
}

__attribute__((noinline)) void in_child(struct times *times, char **argv)
{
    pass(times);
    char *again[] = { argv[0], argv[1], argv[2], argv[3], "0", "exec", 0 };
    execv("/proc/self/exe", again);
    _exit(1);
}

/* Makes system calls whose functions in the kernel have other names. All of them fail and have no effect. */
static void some_calls(void)
{
    long calls[] = { SYS_stat, SYS_fstat, SYS_lstat, SYS_uname, SYS_sendfile, SYS_umount2 };
    for (int i = 0; i < 6; i++)
        for (int j = 0; j <= i; j++)
            syscall(calls[i], -1, 0, 0, 0);
}

int main(int argc, char **argv)
{
    if (!strcmp(argv[1], "calls")) {
        some_calls();
        return 0;
    }
    struct times times = { atol(argv[1]), atol(argv[2]), atol(argv[3]) };
    long wait_ms = argc > 4 ? atol(argv[4]) : 0;
    struct times one = { 1, 0, 0 };
    for (int i = 0; wait_ms && i < 2; i++) {
        pass(&one);
        usleep(wait_ms * 1000);
    }
    pass(&times);
    if (argc > 5)
        return 0;
    pid_t child = fork();
    if (!child)
        in_child(&times, argv);
    waitpid(child, 0, 0);
    pthread_t thread;
    pthread_create(&thread, 0, in_thread, &times);
    pthread_join(thread, 0);
    return 0;
}
