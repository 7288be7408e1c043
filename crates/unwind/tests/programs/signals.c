// Signal handlers: at the top of a recursion, nested, on an alternate stack, in the middle of code (a fault), during
// a system call that waits, and one that ends with siglongjmp.
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>
volatile long sum;
static sigjmp_buf back;
static char *page;

__attribute__((noinline)) long work(long n) {
    long s = 0;
    for (long i = 0; i < n; i++) s += i * sum ^ s;
    return s;
}

static void simple(int signal) { sum += work(20) + signal; }
static void nested(int signal) { sum += work(5); raise(SIGUSR1); sum += signal; }
static void leave(int signal) { sum += signal; siglongjmp(back, 1); }
static void mend(int signal, siginfo_t *info, void *context) {
    sum += signal;
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

__attribute__((noinline)) long deeper(int depth, int signal) {
    char b[64];
    memset(b, depth, sizeof b);
    if (depth == 0) {
        raise(signal);
        return b[3];
    }
    return deeper(depth - 1, signal) + b[depth & 63];
}

// The fault occurs at the first instruction, where the lookup must not go back by one.
__attribute__((noinline)) long load(volatile char *at) { return *at; }

int main(void) {
    stack_t other = {.ss_sp = malloc(65536), .ss_size = 65536};
    sigaltstack(&other, 0);
    signal(SIGUSR1, simple);
    signal(SIGUSR2, nested);
    struct sigaction action = {.sa_handler = simple, .sa_flags = SA_ONSTACK};
    sigaction(SIGURG, &action, 0);
    action.sa_handler = leave, action.sa_flags = 0;
    sigaction(SIGWINCH, &action, 0);
    action.sa_sigaction = mend, action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, 0);
    action.sa_handler = simple, action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, 0);

    for (int i = 0; i < 3; i++) sum += deeper(10, SIGUSR1);
    sum += deeper(3, SIGUSR2);
    sum += deeper(4, SIGURG);
    if (!sigsetjmp(back, 1)) deeper(5, SIGWINCH);
    page = mmap(0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sum += load(page);
    // Blocked until the wait begins, so that the signal arrives during the wait.
    sigset_t alarm_only, none;
    sigemptyset(&none);
    sigemptyset(&alarm_only);
    sigaddset(&alarm_only, SIGALRM);
    sigprocmask(SIG_BLOCK, &alarm_only, 0);
    struct itimerval timer = {.it_value = {.tv_usec = 20000}};
    setitimer(ITIMER_REAL, &timer, 0);
    sigsuspend(&none);
    return 0;
}
