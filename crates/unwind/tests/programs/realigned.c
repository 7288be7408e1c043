// Functions that realign the stack and use alloca: GCC finds the caller's frame through a saved pointer (DRAP), so the
// CFA is first in r10 and then in memory.
#include <stdlib.h>
#include <string.h>
typedef float vector __attribute__((vector_size(32)));
volatile float sum;

__attribute__((noinline)) float use(vector *p, int n) {
    float s = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < 8; j++) s += p[i][j];
    return s;
}

__attribute__((noinline)) float deeper(int depth, int n) {
    vector a[4];
    char *x = __builtin_alloca(n + depth);
    memset(x, depth, n + depth);
    for (int i = 0; i < 4; i++) a[i] = (vector){depth, 1, 2, 3, 4, 5, 6, x[0]};
    if (depth == 0) return use(a, 4);
    return deeper(depth - 1, n) + a[depth & 3][1] + x[depth];
}

// Takes more arguments than fit into registers.
__attribute__((noinline)) float many(int a, int b, int c, int d, int e, int f, int g, vector h, int n) {
    vector local[2] = {h, h};
    char *x = __builtin_alloca(n);
    memset(x, a + b + c + d + e + f + g, n);
    return use(local, 2) + x[n / 2] + deeper(2, n);
}

int main(void) {
    for (int i = 0; i < 20; i++) sum += deeper(i % 5, 40 + i) + many(1, 2, 3, 4, 5, 6, 7, (vector){1, 2}, 30 + i);
    return 0;
}
