// Code in anonymous memory, as a JIT compiler that keeps frame pointers writes it: three functions that call each other
// and at last a function of the program.
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
volatile long sum;

__attribute__((noinline)) long at_last(long x) {
    sum += x;
    return x + 1;
}

// push rbp; mov rbp, rsp; sub rsp, 32; mov [rbp-8], rdi; mov rax, TARGET; call rax; add rax, [rbp-8]; leave; ret
static unsigned char *emit(unsigned char *at, void *target) {
    static const unsigned char before[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x20, 0x48, 0x89, 0x7d, 0xf8, 0x48, 0xb8};
    static const unsigned char after[] = {0xff, 0xd0, 0x48, 0x03, 0x45, 0xf8, 0xc9, 0xc3};
    memcpy(at, before, sizeof before);
    memcpy(at + sizeof before, &target, 8);
    memcpy(at + sizeof before + 8, after, sizeof after);
    return at + sizeof before + 8 + sizeof after;
}

int main(void) {
    unsigned char *code = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *inner = code;
    unsigned char *next = emit(code, (void *)at_last);
    void *middle = next;
    next = emit(next, inner);
    void *outer = next;
    emit(next, middle);
    mprotect(code, 4096, PROT_READ | PROT_EXEC);
    for (long i = 0; i < 20; i++) sum += ((long (*)(long))outer)(i);
    return 0;
}
