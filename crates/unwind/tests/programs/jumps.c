// Control flow other than call and return: longjmp, vfork, the vdso, a tail call, qsort's callback.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
volatile long sum;
static jmp_buf back;

__attribute__((noinline)) void leave(int depth) {
    if (depth == 0) longjmp(back, 1);
    leave(depth - 1);
    sum++;
}

__attribute__((noinline)) long tail(long n) { return labs(n - sum); }
__attribute__((noinline)) long through(long n) { sum += n; return tail(n + 1); }
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

int main(void) {
    for (int i = 0; i < 3; i++)
        if (!setjmp(back)) leave(i * 3);
    pid_t child = vfork();
    if (child == 0) _exit(3);
    int status;
    waitpid(child, &status, 0);
    struct timespec now;
    struct timeval day;
    for (int i = 0; i < 5; i++) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        gettimeofday(&day, 0);
        sum += now.tv_nsec + day.tv_usec + time(0) + through(i);
    }
    int numbers[50];
    for (int i = 0; i < 50; i++) numbers[i] = i * 7919 % 101;
    qsort(numbers, 50, sizeof *numbers, compare);
    return numbers[0] != 0;
}
