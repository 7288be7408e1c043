// Works on stacks that begin otherwise than main's: of coroutines by ucontext, of one that was put together by hand and returns to
// address 0, and of a thread that the program makes itself; on main's, in a signal handler too.
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#ifndef WITHOUT_CONTEXT
#include <ucontext.h>
#endif

#define ROUNDS 150
static volatile unsigned long sink;
static char room[4][1 << 16] __attribute__((aligned(64)));

__attribute__((noinline)) static void work(void)
{
    for (unsigned long i = 0; i < 5000000; i++)
        sink += i * i;
}

#ifndef WITHOUT_CONTEXT
static ucontext_t outside, inside;

__attribute__((noinline)) static void in_context(void)
{
    for (;;) {
        work();
        swapcontext(&inside, &outside);
    }
}

__attribute__((noinline)) static void switch_to_context(void)
{
    getcontext(&inside);
    inside.uc_stack.ss_sp = room[0];
    inside.uc_stack.ss_size = sizeof room[0];
    inside.uc_link = &outside;
    makecontext(&inside, in_context, 0);
    for (int i = 0; i < ROUNDS; i++)
        swapcontext(&outside, &inside);
}
#else
static void switch_to_context(void) {}
#endif

__attribute__((noinline)) static int in_thread(void *unused)
{
    for (int i = 0; i < ROUNDS; i++)
        work();
    return (int)(long)unused;
}

__attribute__((noinline)) static void by_hand(void)
{
    for (int i = 0; i < ROUNDS; i++)
        work();
    // There is nothing to return to.
    _exit(0);
}

__attribute__((noinline)) static void switch_by_hand(void)
{
    void **top = (void **)(room[2] + sizeof room[2]) - 1;
    *top = 0;
    __asm__ volatile("mov %0, %%rsp\n\txor %%ebp, %%ebp\n\tjmp *%1" : : "r"(top), "r"(by_hand) : "memory");
    __builtin_unreachable();
}

static void on_signal(int number)
{
    work();
    sink += number;
}

int main(int count, char **arguments)
{
    const char *way = count > 1 ? arguments[1] : "";
    if (!strcmp(way, "context")) {
        switch_to_context();
    } else if (!strcmp(way, "thread")) {
        int pid = clone(in_thread, room[1] + sizeof room[1], CLONE_VM | SIGCHLD, 0);
        waitpid(pid, 0, 0);
    } else if (!strcmp(way, "signal")) {
        signal(SIGUSR1, on_signal);
        for (int i = 0; i < ROUNDS; i++)
            raise(SIGUSR1);
    } else if (!strcmp(way, "main")) {
        in_thread(0);
    } else if (!strcmp(way, "hand")) {
        switch_by_hand();
    }
    return sink == 1;
}
