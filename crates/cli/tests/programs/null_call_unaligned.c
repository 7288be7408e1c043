/* Calls a null pointer from assembly that does not align its stack: again and again, as the handler of the signal returns at first, and
 * works in the handler in the end. */
#include <signal.h>
#include <stdlib.h>
#include <time.h>

volatile unsigned long sink;
void (*volatile nothing)(void);
void calls_unaligned(void);

__asm__(".text\n"
        ".globl calls_unaligned\n"
        ".type calls_unaligned, @function\n"
        "calls_unaligned:\n"
        ".cfi_startproc\n"
        "sub $16, %rsp\n"
        ".cfi_adjust_cfa_offset 16\n"
        "movq $0, (%rsp)\n"
        "movq $0, 8(%rsp)\n"
        "mov nothing(%rip), %rax\n"
        "call *%rax\n"
        "add $16, %rsp\n"
        ".cfi_adjust_cfa_offset -16\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size calls_unaligned, .-calls_unaligned\n");

__attribute__((noinline)) void spin(void)
{
    while (clock() < 6 * CLOCKS_PER_SEC / 10)
        for (int i = 0; i < 100000; i++)
            sink += i;
}

static void handler(int signal)
{
    (void)signal;
    if (clock() < 3 * CLOCKS_PER_SEC / 10)
        return;
    spin();
    _Exit(0);
}

int main(void)
{
    signal(SIGSEGV, handler);
    calls_unaligned();
    sink++;
    return 0;
}
