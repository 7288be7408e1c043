/* Makes only one system call, or only page faults, for a number of milliseconds of CPU time: calls WHAT MS. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long used_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int main(int count, char **words)
{
    int faults = count > 1 && !strcmp(words[1], "faults");
    long end = used_ms() + (count > 2 ? atol(words[2]) : 100);
    size_t bytes = 16 << 20;
    while (used_ms() < end) {
        if (faults) {
            char *memory = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            /* Pages of the smallest size: large ones would be few faults. */
            madvise(memory, bytes, MADV_NOHUGEPAGE);
            for (size_t at = 0; at < bytes; at += 4096)
                ((volatile char *)memory)[at] = 1;
            munmap(memory, bytes);
        } else {
            for (int i = 0; i < 1000; i++)
                syscall(SYS_getppid);
        }
    }
    return 0;
}
