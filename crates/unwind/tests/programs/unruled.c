// Code without unwind rules and without frame pointers: frames of many sizes, calls through pointers, calls through
// stubs that only jump, calls into the C library and back, recursion. Old return addresses are all over the stack.
#include <stdlib.h>
#include <string.h>
volatile long sum;
typedef long function(long);

__attribute__((noinline)) long leaf(long x) { return x * 3 + sum; }
__attribute__((noinline)) long small(long x) { return leaf(x) + leaf(x + 1); }
__attribute__((noinline)) long large(long x) {
    volatile char room[700];
    for (int i = 0; i < 8; i++) room[i * 80] = x;
    return small(x) + room[80] + leaf(x);
}
__attribute__((noinline)) long saving(long a) {
    long b = leaf(a), c = leaf(b), d = leaf(c), e = leaf(d), f = leaf(e);
    return a + b * c + d * e + f + small(a);
}
__attribute__((noinline)) long stub(long x) { return saving(x + 1); }
__attribute__((noinline)) long deeper(long depth) {
    volatile long room[5] = {depth};
    return depth == 0 ? large(3) : deeper(depth - 1) + room[0];
}
static function *volatile table[] = {leaf, small, large, saving, stub, deeper};

__attribute__((noinline)) static int compare(const void *a, const void *b) {
    return (int)(small(*(const long *)a) - small(*(const long *)b));
}

__attribute__((noinline)) long through(long x) { return table[x % 6](x) + 1; }

int main(void) {
    long numbers[20];
    for (long i = 0; i < 20; i++) numbers[i] = i * 7919 % 101;
    for (long i = 0; i < 12; i++) sum += through(i);
    qsort(numbers, 20, sizeof *numbers, compare);
    char *copy = strdup("copied");
    sum += strlen(copy) + deeper(4);
    free(copy);
    return 0;
}
