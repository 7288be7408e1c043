// Code in anonymous memory, as JIT compilers that keep frame pointers generate it: functions that call each other,
// with all common prologues and epilogues; the innermost calls a function of the program.
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
volatile long sum;

__attribute__((noinline)) long at_last(long x) {
    sum += x;
    return x + 1;
}

struct code {
    unsigned char bytes[16];
    int length;
};
// With and without endbr64, and the move in both its encodings.
static const struct code prologues[] = {
    {{0x55, 0x48, 0x89, 0xe5}, 4},
    {{0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5}, 8},
    {{0x55, 0x48, 0x8b, 0xec}, 4},
};
// leave; ret - add rsp, 32; pop rbp; ret - mov rsp, rbp; pop rbp; rep ret - leave; ret 0 - pop rbp; vzeroupper; ret
static const struct code epilogues[] = {
    {{0xc9, 0xc3}, 2},
    {{0x48, 0x83, 0xc4, 0x20, 0x5d, 0xc3}, 6},
    {{0x48, 0x89, 0xec, 0x5d, 0xf3, 0xc3}, 6},
    {{0xc9, 0xc2, 0, 0}, 4},
    {{0x48, 0x83, 0xc4, 0x20, 0x5d, 0xc5, 0xf8, 0x77, 0xc3}, 9},
};

static unsigned char *put(unsigned char *at, const void *bytes, int length) { return memcpy(at, bytes, length) + length; }

// push rbp; mov rbp, rsp; sub rsp, 32; mov [rbp-8], rdi; mov rax, TARGET; call rax; add rax, [rbp-8]; leave; ret
static unsigned char *emit(unsigned char *at, void *target, int prologue, int epilogue) {
    static const unsigned char before[] = {0x48, 0x83, 0xec, 0x20, 0x48, 0x89, 0x7d, 0xf8, 0x48, 0xb8};
    static const unsigned char after[] = {0xff, 0xd0, 0x48, 0x03, 0x45, 0xf8};
    at = put(at, prologues[prologue].bytes, prologues[prologue].length);
    at = put(at, before, sizeof before);
    at = put(at, &target, 8);
    at = put(at, after, sizeof after);
    return put(at, epilogues[epilogue].bytes, epilogues[epilogue].length);
}

int main(void) {
    unsigned char *code = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char *function = (void *)at_last, *next = code;
    int epilogues_here = __builtin_cpu_supports("avx") ? 5 : 4;
    for (int prologue = 0; prologue < 3; prologue++)
        for (int epilogue = 0; epilogue < epilogues_here; epilogue++) {
            unsigned char *begin = next;
            next = emit(begin, function, prologue, epilogue);
            function = begin;
        }
    // The last function ends at the end of the code mapping.
    int length = next - function;
    unsigned char *last = code + 4096 - length;
    memmove(last, function, length);
    mprotect(code, 4096, PROT_READ | PROT_EXEC);
    for (long i = 0; i < 20; i++) sum += ((long (*)(long))last)(i);
    return 0;
}
