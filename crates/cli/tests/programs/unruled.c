// Waits below functions that have neither unwind rules nor frame pointers.
#include <stdio.h>
#include <unistd.h>
volatile long sum;

__attribute__((noinline)) void innermost(void) {
    volatile char room[300] = {0};
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
