// Equal sequences of code, which Clang's outliner replaces by calls of functions without frames: the return address is
// saved in a register or on the stack around them, or they are tail calls.
#include <stdlib.h>
volatile long a, b, c, d;

__attribute__((noinline)) long leaf(long x) { return x * 3 + a; }

#define SEQUENCE(x) a = b * 5 + x, b = c ^ a, c = d + 7 * b, d = a - c

__attribute__((noinline)) long first(long x) {
    SEQUENCE(x);
    long y = leaf(x + 1);
    SEQUENCE(y);
    return y + a;
}
__attribute__((noinline)) long second(long x) {
    SEQUENCE(x);
    return x ^ b;
}
__attribute__((noinline)) void third(long x) {
    leaf(x);
    SEQUENCE(x);
}
__attribute__((noinline)) long fourth(long x, long n) {
    char room[n];
    for (long i = 0; i < n; i++) room[i] = x;
    SEQUENCE(x);
    return room[n / 2] + first(x) + second(x);
}
__attribute__((noinline)) long deeper(long depth) {
    third(depth);
    if (depth == 0) return fourth(1, 9);
    long result = deeper(depth - 1) + second(depth);
    SEQUENCE(result);
    return result + leaf(result);
}

int main(void) {
    for (long i = 0; i < 8; i++) a += deeper(i);
    return 0;
}
