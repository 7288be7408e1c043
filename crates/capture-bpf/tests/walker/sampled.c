/* A program that records its own stacks: at each tick of a timer its registers and its stack, as they were.
 *
 * Written to the file that is named: the number of regions of code, for each where it is, how many words it has and these; for each sample the
 * registers by DWARF number, of which the last is the instruction pointer (17 on x86_64, 33 on aarch64), the number of words of the stack and these words from the stack pointer upwards; a sample of zeros; the text of /proc/self/maps. The code that runs: recursion
 * without frame pointers, a callback out of the C library (qsort), calls through the procedure linkage table, functions
 * that align their stack, code that is in no file and keeps a frame pointer, a handler of another signal, so that there are stacks with
 * two contexts in them. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

enum { SAMPLES = 400 };

#ifdef __x86_64__
enum { REGISTERS = 17, STACK_POINTER = 7 };

static uint64_t register_of(const mcontext_t *context, int number)
{
    static const int by_dwarf[REGISTERS] = { REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
                                             REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP };
    return context->gregs[by_dwarf[number]];
}
#else
enum { REGISTERS = 33, STACK_POINTER = 31 };

static uint64_t register_of(const mcontext_t *context, int number)
{
    return number < 31 ? context->regs[number] : number == STACK_POINTER ? context->sp : context->pc;
}
#endif

static uint64_t *stack_end;
static int out;
static volatile int taken;
static volatile uint64_t sink;

static void put(const void *bytes, size_t size)
{
    if (write(out, bytes, size) != (ssize_t)size)
        _exit(3);
}

static void tick(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    if (taken >= SAMPLES)
        return;
    taken++;
    uint64_t head[REGISTERS + 1];
    for (int i = 0; i < REGISTERS; i++)
        head[i] = register_of(&((ucontext_t *)context)->uc_mcontext, i);
    uint64_t *stack = (uint64_t *)head[STACK_POINTER];
    head[REGISTERS] = stack_end - stack;
    put(head, sizeof head);
    put(stack, (stack_end - stack) * sizeof *stack);
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    for (int i = 0; i < 50; i++)
        sink += x ^ y;
    return x < y ? -1 : x > y;
}

static void sort(void)
{
    uint64_t numbers[300];
    for (int i = 0; i < 300; i++)
        numbers[i] = (uint64_t)i * 0x9e3779b97f4a7c15u;
    qsort(numbers, 300, sizeof *numbers, compare);
    sink += numbers[7];
}

/* Uses a frame of variable size that is aligned further than the stack: for such frames compilers keep the CFA in memory. */
__attribute__((noinline)) static void align(unsigned words)
{
    uint64_t numbers[words] __attribute__((aligned(64)));
    __builtin_memset(numbers, 0, words * sizeof *numbers);
    sort();
    for (int i = 0; i < 200; i++)
        sink += numbers[i % words] ^ (uintptr_t)numbers;
}

#ifdef __x86_64__
/* Aligns the stack like hand-written code: the earlier stack pointer is a word of the frame. */
void aligned_by_hand(void (*)(unsigned), unsigned);
__asm__(".text\n.type aligned_by_hand, @function\naligned_by_hand:\n.cfi_startproc\n"
        "push %rbx\n.cfi_def_cfa_offset 16\n.cfi_offset rbx, -16\n"
        "mov %rdi, %rax\nmov %esi, %edi\nmov %rsp, %r11\n.cfi_def_cfa r11, 16\n"
        "sub $200, %rsp\nand $-64, %rsp\nmov %r11, 40(%rsp)\n"
        ".cfi_escape 0x0f, 5, 0x77, 40, 0x06, 0x23, 16\n"
        "call *%rax\nmov $3000, %ecx\n1: dec %ecx\njnz 1b\n"
        "mov 40(%rsp), %rsp\n.cfi_def_cfa rsp, 16\npop %rbx\n.cfi_def_cfa_offset 8\nret\n.cfi_endproc\n");

/* Made at run time: push %rbp; mov %rsp, %rbp; call *%rdi; mov $65536, %ecx; 1: dec %ecx; jnz 1b; pop %rbp; ret. */
static const unsigned char made_code[] = { 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0xb9, 0, 0, 1, 0, 0xff, 0xc9, 0x75, 0xfc, 0x5d, 0xc3 };
#else
static void aligned_by_hand(void (*called)(unsigned), unsigned words)
{
    called(words);
}

/* Made at run time, with a record in the midst of the frame: sub sp, sp, #48; stp x29, x30, [sp, #16]; add x29, sp, #16; blr x0;
 * mov w0, #65536; 1: subs w0, w0, #1; b.ne 1b; ldp x29, x30, [sp, #16]; add sp, sp, #48; ret. */
static const uint32_t made_code[] = { 0xd100c3ff, 0xa9017bfd, 0x910043fd, 0xd63f0000, 0x52a00020, 0x71000400, 0x54ffffe1, 0xa9417bfd, 0x9100c3ff, 0xd65f03c0 };
#endif
static void (*made)(void (*)(void));

__attribute__((noinline)) static uint64_t descend(unsigned depth, char *text)
{
    char copy[64];
    strncpy(copy, text, sizeof copy - 1);
    if (depth == 0) {
        sort();
        align(depth + 100);
        aligned_by_hand(align, 30);
        made(sort);
    }
    uint64_t below = depth ? descend(depth - 1, copy) : 1;
    for (int i = 0; i < 200; i++)
        sink += below + strnlen(copy, 40);
    return below + sink;
}

static void interrupted(int number)
{
    (void)number;
    sink += descend(5, "inside a handler");
}

/* The code that handlers return to. */
static const void *returns_to;

static void note_return(int number)
{
    (void)number;
    returns_to = __builtin_extract_return_addr(__builtin_return_address(0));
}

extern const char __executable_start[], etext[];

static void put_code(const void *code, uint64_t words)
{
    uint64_t head[2] = { (uintptr_t)code, words };
    put(head, sizeof head);
    put(code, words * 8);
}

int main(int argc, char **argv)
{
    if (argc != 2 || (out = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0600)) < 0)
        return 2;
    /* The arguments' strings are above all frames. */
    stack_end = (uint64_t *)((uintptr_t)argv[0] & ~(uintptr_t)7);
    void *page = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return 4;
    memcpy(page, made_code, sizeof made_code);
    memcpy(&made, &page, sizeof made);
    __builtin___clear_cache(page, (char *)page + sizeof made_code);
    struct sigaction on_noted = { .sa_handler = note_return };
    sigaction(SIGUSR2, &on_noted, 0);
    raise(SIGUSR2);
    uint64_t regions = 3;
    put(&regions, sizeof regions);
    put_code(page, 512);
    put_code(__executable_start, (etext - __executable_start) / 8);
    put_code(returns_to, 1);
    struct sigaction on_tick = { .sa_sigaction = tick, .sa_flags = SA_SIGINFO | SA_RESTART };
    struct sigaction on_other = { .sa_handler = interrupted };
    sigaction(SIGPROF, &on_tick, 0);
    sigaction(SIGUSR1, &on_other, 0);
    struct itimerval often = { { 0, 1000 }, { 0, 1000 } };
    setitimer(ITIMER_PROF, &often, 0);
    while (taken < SAMPLES) {
        descend(20, "the plain way");
        raise(SIGUSR1);
    }
    uint64_t zeros[REGISTERS + 1] = { 0 };
    put(zeros, sizeof zeros);
    int maps = open("/proc/self/maps", O_RDONLY);
    char text[4096];
    for (ssize_t size; (size = read(maps, text, sizeof text)) > 0;)
        put(text, size);
    return 0;
}
