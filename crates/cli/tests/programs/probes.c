// Functions that begin in different ways. The argument is the number of calls of each.
#include <stdlib.h>

#define FUNCTION(name, code) \
    __asm__(".text\n.globl " #name "\n.type " #name ",@function\n" #name ":\n.cfi_startproc\n" code \
            ".cfi_endproc\n.size " #name ", .-" #name "\n"); \
    long name(long)

// The kernel emulates the first instruction.
FUNCTION(pushes, "push %rbx\n.cfi_adjust_cfa_offset 8\npop %rbx\n.cfi_adjust_cfa_offset -8\nret\n");
// The kernel emulates the conditional jump, and every other call does not come to the push, as in glibc's free.
FUNCTION(tests, "test %rdi,%rdi\nje 1f\npush %rbx\n.cfi_adjust_cfa_offset 8\npop %rbx\n.cfi_adjust_cfa_offset -8\n1: ret\n");
// The push is after the stack pointer has moved.
FUNCTION(moves, "sub $24,%rsp\n.cfi_adjust_cfa_offset 24\nlea 1(%rdi),%rax\npush %rbx\n.cfi_adjust_cfa_offset 8\npop %rbx\n"
                ".cfi_adjust_cfa_offset -8\nadd $24,%rsp\n.cfi_adjust_cfa_offset -24\nret\n");
// A loop begins at the first instruction that the kernel emulates.
FUNCTION(loops, "mov $5,%eax\n1: push %rax\n.cfi_adjust_cfa_offset 8\npop %rax\n.cfi_adjust_cfa_offset -8\ndec %eax\njne 1b\nret\n");
// The first instruction that the kernel emulates is behind one that may fault.
FUNCTION(reads, "mov (%rsp),%rax\npush %rbx\n.cfi_adjust_cfa_offset 8\npop %rbx\n.cfi_adjust_cfa_offset -8\nret\n");
// Another function jumps to the place.
FUNCTION(jumped_to, "xor %eax,%eax\n.Linside: push %rbx\n.cfi_adjust_cfa_offset 8\npop %rbx\n.cfi_adjust_cfa_offset -8\nret\n");
FUNCTION(jumps, "xor %eax,%eax\n.byte 0xe9\n.long .Linside - . - 4\n");

int main(int count, char **arguments) {
    long calls = count > 1 ? atol(arguments[1]) : 1;
    for (long call = 0; call < calls; call++) {
        pushes(call), tests(call & 1), moves(call), loops(call), reads(call), jumped_to(call), jumps(call);
    }
    return 0;
}
