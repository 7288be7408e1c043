// Works on stacks that begin otherwise than main's: of coroutines by ucontext, of one that was put together by hand and returns to
// address 0, and of a thread that the program makes itself; in a signal handler on main's, and on one of its own that interrupts a coroutine.
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
static char room[5][1 << 16] __attribute__((aligned(64)));

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

__attribute__((noinline)) static void raises_in_context(void)
{
    for (;;) {
        raise(SIGUSR1);
        swapcontext(&inside, &outside);
    }
}

__attribute__((noinline)) static void switch_to_context(void (*routine)(void))
{
    getcontext(&inside);
    inside.uc_stack.ss_sp = room[0];
    inside.uc_stack.ss_size = sizeof room[0];
    inside.uc_link = &outside;
    makecontext(&inside, routine, 0);
    for (int i = 0; i < ROUNDS; i++)
        swapcontext(&outside, &inside);
}

static void on_signal(int);

static void switch_with_handler(void)
{
    stack_t own = {.ss_sp = room[4], .ss_size = sizeof room[4]};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    sigaltstack(&own, 0);
    sigaction(SIGUSR1, &action, 0);
    switch_to_context(raises_in_context);
}
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
#ifndef WITHOUT_CONTEXT
    if (!strcmp(way, "context"))
        switch_to_context(in_context);
    if (!strcmp(way, "handler"))
        switch_with_handler();
#endif
    if (!strcmp(way, "thread")) {
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
