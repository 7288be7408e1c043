// Functions whose CFA is in a register other than the stack and the frame pointer: handwritten ones for each
// callee-saved register, and nested functions compiled by GCC that realign the stack (r13 there: the usual r10 is
// taken).
#include <signal.h>
#include <stdlib.h>
#include <string.h>
typedef long function(long depth);
volatile long sum;
long in_rbx(long), in_r12(long), in_r13(long), in_r14(long), in_r15(long);

// NAME(depth): keeps the stack pointer in REGISTER, makes a frame whose size no rule gives, and calls `next`, which
// changes all these registers.
#define KEEPS(name, register)                                                                                     \
    asm(".text\n.globl " name "\n.type " name ", @function\n" name ":\n"                                          \
        ".cfi_startproc\n"                                                                                        \
        "push %" register "\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset " register ", 0\n"                         \
        "mov %rsp, %" register "\n.cfi_def_cfa_register " register "\n"                                           \
        "lea 2(%rdi), %rax\nshl $5, %rax\nsub %rax, %rsp\nand $-64, %rsp\n"                                       \
        "push %rdi\nsub $8, %rsp\ncall next\nadd $8, %rsp\npop %rdi\nadd %rdi, %rax\n"                            \
        "mov %" register ", %rsp\n.cfi_def_cfa_register rsp\n"                                                    \
        "pop %" register "\n.cfi_restore " register "\n.cfi_adjust_cfa_offset -8\n"                               \
        "ret\n.cfi_endproc\n.size " name ", .-" name "\n")
KEEPS("in_rbx", "rbx");
KEEPS("in_r12", "r12");
KEEPS("in_r13", "r13");
KEEPS("in_r14", "r14");
KEEPS("in_r15", "r15");

static function *const all[] = {in_rbx, in_r12, in_r13, in_r14, in_r15};
static void handler(int signal) { sum += signal; }

// Needs all registers, so that the CFA of the functions above can only be found in this function's saved registers.
__attribute__((noinline)) static long busy(long depth) {
    long a[8];
    for (int i = 0; i < 8; i++) a[i] = sum + i * depth;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 8; j++) a[j] += a[(j + 3) & 7] ^ sum;
    return a[0] + a[1] * a[2] + a[3] * a[4] + a[5] * a[6] + a[7];
}

long next(long depth) {
    long here = busy(depth);
    if (depth == 3) raise(SIGUSR1);
    if (depth == 0) return here;
    return all[depth % 5](depth - 1) + busy(depth) + here;
}

#ifdef NESTED
typedef float vector __attribute__((vector_size(32)));
__attribute__((noinline)) static long nested(long depth) {
    long outer = depth;
    __attribute__((noinline)) long realigned(long n) {
        vector a[4];
        char *x = __builtin_alloca(n + 8);
        memset(x, n, n + 8);
        for (int i = 0; i < 4; i++) a[i] = (vector){outer, 1, 2, 3, 4, 5, 6, x[0]};
        long s = next(n);
        for (int i = 0; i < 4; i++) s += a[i][n & 7];
        outer += s;
        return n == 0 ? s : s + realigned(n - 1);
    }
    return realigned(depth) + outer;
}
#endif

int main(void) {
    signal(SIGUSR1, handler);
    for (int i = 0; i < 5; i++) sum += all[i](7 + i);
#ifdef NESTED
    for (int i = 0; i < 3; i++) sum += nested(i + 2);
#endif
    return 0;
}
