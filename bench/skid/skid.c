/* Loops with one instruction that is known to take the time, to see where a timer's samples land: skid KIND SECONDS.
 *
 * KIND is load, loaduse, lock, sqrt, div or branch. At the end the program prints where the loop begins, the address of the slow
 * instruction, where the loop ends (build it with -no-pie, so that these are the file's), and how many nanoseconds of processor
 * time a round took. Built with -DWITHOUT it has a nop in the place of the slow instruction: what that saves is what the
 * instruction takes. The labels are local: one that the linker sees would be a function of its own to a profiler. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CELLS (1u << 21)
#define ROUNDS 200000
#ifdef WITHOUT
#define SLOW(instruction) "nop"
#else
#define SLOW(instruction) instruction
#endif
#define PAD "add $1,%%r8\n add $1,%%r9\n add $1,%%r10\n add $1,%%r11\n"
/* Around a loop: the addresses of its begin (1), its slow instruction (7) and its end (8) go where they are printed from. */
#define PLACES "lea 1f(%%rip),%%r8\n mov %%r8,places(%%rip)\n lea 7f(%%rip),%%r8\n mov %%r8,places+8(%%rip)\n" \
    "lea 8f(%%rip),%%r8\n mov %%r8,places+16(%%rip)\n"
#define CLOBBERS "r8", "r9", "r10", "r11", "memory"
#define LOOP __attribute__((noinline, noclone)) static

void *places[3];

/* A ring of cells, each in a cache line of its own, in random order. */
static void **ring(void)
{
    void **cells = aligned_alloc(64, (size_t)CELLS * 64);
    uint32_t *order = malloc((size_t)CELLS * sizeof *order);
    for (uint32_t i = 0; i < CELLS; i++)
        order[i] = i;
    for (uint32_t i = CELLS - 1; i; i--) {
        uint32_t j = (((uint64_t)rand() << 31) + rand()) % i, other = order[i];
        order[i] = order[j];
        order[j] = other;
    }
    for (uint32_t i = 0; i < CELLS; i++)
        cells[(size_t)order[i] * 8] = &cells[(size_t)order[(i + 1) % CELLS] * 8];
    free(order);
    return cells;
}

LOOP void load(uint64_t n, void **start)
{
    static void **at;
    void **cell = at ? at : start;
    asm volatile(PLACES "1:" PAD "7: " SLOW("mov (%1),%1") "\n" PAD PAD "dec %0\n jnz 1b\n8:\n" : "+r"(n), "+r"(cell)::CLOBBERS);
    at = cell;
}

LOOP void loaduse(uint64_t n, void **start)
{
    static void **at;
    void **cell = at ? at : start;
    asm volatile(PLACES "1:" PAD "7: " SLOW("mov (%1),%1") "\n add $1,%%r8\n add $1,%%r9\n test %1,%1\n je 8f\n" PAD PAD
                        "dec %0\n jnz 1b\n8:\n" : "+r"(n), "+r"(cell)::CLOBBERS);
    at = cell;
}

LOOP void lock(uint64_t n, void **cell)
{
    uint64_t sum = 0;
    (void)cell;
    asm volatile(PLACES "1:" PAD "7: " SLOW("lock addq $1,%1") "\n" PAD PAD "dec %0\n jnz 1b\n8:\n" : "+r"(n), "+m"(sum)::CLOBBERS);
}

LOOP void root(uint64_t n, void **cell)
{
    double value = 2.0;
    (void)cell;
    asm volatile(PLACES "1:" PAD "7: " SLOW("sqrtsd %1,%1") "\n" PAD PAD "dec %0\n jnz 1b\n8:\n" : "+r"(n), "+x"(value)::CLOBBERS);
}

LOOP void divide(uint64_t n, void **cell)
{
    (void)cell;
    asm volatile(PLACES "1:" PAD "mov $0,%%edx\n mov $1000000007,%%eax\n7: " SLOW("div %%rcx") "\n" PAD PAD "dec %0\n jnz 1b\n8:\n"
                 : "+r"(n) : "c"(7ull) : "rax", "rdx", CLOBBERS);
}

LOOP void branch(uint64_t n, void **cell)
{
    static uint64_t x = 88172645463325252ull;
    (void)cell;
    asm volatile(PLACES "1: mov %1,%%rax\n shl $13,%%rax\n xor %%rax,%1\n mov %1,%%rax\n shr $7,%%rax\n xor %%rax,%1\n"
                        "mov %1,%%rax\n shl $17,%%rax\n xor %%rax,%1\n test $1024,%1\n7: " SLOW("jz 2f") "\n" PAD "2:" PAD
                        "dec %0\n jnz 1b\n8:\n" : "+r"(n), "+r"(x)::"rax", CLOBBERS);
}

int main(int argc, char **argv)
{
    static const struct { const char *name; void (*run)(uint64_t, void **); } kinds[] = {
        {"load", load}, {"loaduse", loaduse}, {"lock", lock}, {"sqrt", root}, {"div", divide}, {"branch", branch},
    };
    const char *kind = argc > 1 ? argv[1] : "";
    double seconds = argc > 2 ? atof(argv[2]) : 1.0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].name, kind))
            continue;
        void **cell = strncmp(kind, "load", 4) ? NULL : ring();
        clock_t start = clock(), now = start;
        uint64_t runs = 0;
        for (; now < start + (clock_t)(seconds * CLOCKS_PER_SEC); now = clock(), runs++)
            kinds[i].run(ROUNDS, cell);
        double spent = (double)(now - start) / CLOCKS_PER_SEC;
        printf("%p %p %p %.4f\n", places[0], places[1], places[2], spent * 1e9 / ((double)runs * ROUNDS));
        return 0;
    }
    fprintf(stderr, "usage: skid load|loaduse|lock|sqrt|div|branch [SECONDS]\n");
    return 2;
}
