// Waits below functions that have neither unwind rules nor frame pointers. The innermost one lends its stack pointer to another register for a moment,
// so that no rules can be made of its code.
#include <stdio.h>
#include <unistd.h>
volatile long sum;

__attribute__((noinline)) void innermost(void) {
    volatile char room[300] = {0};
    long lent = 0;
    __asm__ volatile("xchg %%rsp, %0\n\txchg %%rsp, %0" : "+r"(lent));
    puts("ready");
    fflush(stdout);
    for (;;) sum += room[7] + pause();
}
__attribute__((noinline)) long deeper(long depth) {
    volatile long room[5] = {depth};
    if (depth == 0) innermost();
    else sum += deeper(depth - 1);
    return room[0];
}

int main(void) { return (int)deeper(3); }
