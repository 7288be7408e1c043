/* Moves code to memory without a file, and works there:
 *   moved    all of its text, to a copy that takes its place in one step, as node does
 *   written  the pages of some functions, by mapping memory over them and writing there, as PHP does
 *   shared   as written, with memory that is a file of memfd_create
 *   beside   no text: a compiled function in memory right behind the program */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;
extern char end;

/* In pages of their own, which begin with the first and are full with the last. */
#define HOT __attribute__((noinline, section(".text.hot_pages")))

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

HOT __attribute__((aligned(4096))) void leaf(unsigned long n)
{
    for (unsigned long i = 0; i < n; i++)
        sink += i * i;
}

HOT void middle(double seconds)
{
    volatile char pad[200];
    pad[0] = 1;
    double until = now() + seconds;
    while (now() < until)
        leaf(200000);
    sink += pad[0];
}

HOT void afterwards(double seconds)
{
    middle(seconds);
    sink++;
}

/* Fills the page. */
__attribute__((section(".text.hot_pages"), aligned(4096), used)) void behind(void)
{
}

/* Copies [a, b) over itself. Calls only the C library, and is not in this range itself. */
static int copy(uintptr_t a, uintptr_t b, const char *how)
{
    size_t size = b - a;
    char *copy = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(copy, (void *)a, size);
    if (!strcmp(how, "moved")) {
        mprotect(copy, size, PROT_READ | PROT_WRITE | PROT_EXEC);
        if (mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)a) == MAP_FAILED)
            return 1;
    } else {
        int is_shared = !strcmp(how, "shared"), file = is_shared ? memfd_create("text", 0) : -1;
        if (is_shared && (file < 0 || write(file, copy, size) != (ssize_t)size))
            return 1;
        int flags = MAP_FIXED | (is_shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS);
        if (mmap((void *)a, size, PROT_READ | (is_shared ? PROT_EXEC : PROT_WRITE), flags, file, 0) == MAP_FAILED)
            return 1;
        if (!is_shared)
            memcpy((void *)a, copy, size);
    }
    return mprotect((void *)a, size, PROT_READ | PROT_EXEC);
}

/* Calls code in memory, as a JIT compiler would write it. */
__attribute__((noinline)) void calls_made(void (*made)(unsigned long), double seconds)
{
    double until = now() + seconds;
    while (now() < until)
        made(200000);
    sink++;
}

int main(int count, char **words)
{
    if (count < 2)
        return 2;
    double seconds = count > 2 ? atof(words[2]) : 1.5;
    if (!strcmp(words[1], "beside")) {
        /* dec %rdi; jnz to it; ret */
        static const unsigned char code[] = { 0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3 };
        uintptr_t at = ((uintptr_t)&end + 0xfff) & ~(uintptr_t)0xfff;
        void *made = mmap((void *)at, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (made == MAP_FAILED)
            return 1;
        memcpy(made, code, sizeof(code));
        mprotect(made, 4096, PROT_READ | PROT_EXEC);
        calls_made((void (*)(unsigned long))made, seconds);
        return 0;
    }
    uintptr_t a = 0, b = 0, from, to;
    char line[512], access[8];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof(line), maps))
        if (sscanf(line, "%lx-%lx %7s", &from, &to, access) == 3 && access[2] == 'x' && from <= (uintptr_t)main && (uintptr_t)main < to)
            a = from, b = to;
    fclose(maps);
    int is_all = !strcmp(words[1], "moved");
    if (!is_all) {
        /* Other pages than those that this runs in. */
        a = (uintptr_t)leaf;
        b = (uintptr_t)behind;
    }
    if (copy(a, b, words[1]))
        return 1;
    afterwards(seconds);
    return 0;
}
