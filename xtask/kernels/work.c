/* A program whose every number is known, for checking what plumb says of it in other kernels.
 *
 *   work cpu        three parts of the processor time in hot(), one in cold(), both below middle()
 *   work calls      2,500 calls of getppid, 500 calls of tick(), 1,500 reads of one byte from /dev/zero
 *   work later      the same, one second after its start
 *   work waits      sleeps 0.3 s in waits_here(), three times
 *   work children   starts itself 20 times as `work nothing`, and waits for each
 *   work nothing    ends */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))

static volatile uint64_t sink;

APART static void spin(uint64_t times)
{
    uint64_t value = 1;
    while (times--) {
        value = value * 6364136223846793005ull + 1442695040888963407ull;
        __asm__ volatile("" : "+r"(value));
    }
    sink += value;
}

APART void hot(uint64_t times)
{
    spin(3 * times);
    __asm__ volatile("");
}

APART void cold(uint64_t times)
{
    spin(times);
    __asm__ volatile("");
}

APART void middle(uint64_t times)
{
    hot(times);
    cold(times);
    __asm__ volatile("");
}

APART void tick(int number)
{
    sink += number;
    __asm__ volatile("");
}

APART void waits_here(void)
{
    struct timespec time = { .tv_nsec = 300000000 };
    nanosleep(&time, 0);
    __asm__ volatile("");
}

static void calls(void)
{
    for (int i = 0; i < 2500; i++)
        syscall(SYS_getppid);
    for (int i = 0; i < 500; i++)
        tick(i);
    int zero = open("/dev/zero", O_RDONLY);
    char byte;
    for (int i = 0; i < 1500; i++)
        if (read(zero, &byte, 1) != 1)
            exit(2);
    close(zero);
}

static void children(const char *self)
{
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (!child) {
            execl(self, "work", "nothing", (char *)0);
            _exit(127);
        }
        if (waitpid(child, 0, 0) != child)
            exit(2);
    }
}

int main(int count, char **words)
{
    const char *what = count > 1 ? words[1] : "";
    uint64_t times = count > 2 ? strtoull(words[2], 0, 10) : 200;
    if (!strcmp(what, "cpu"))
        for (uint64_t i = 0; i < times; i++)
            middle(1000000);
    else if (!strcmp(what, "calls"))
        calls();
    else if (!strcmp(what, "later")) {
        sleep(1);
        calls();
    } else if (!strcmp(what, "waits"))
        for (int i = 0; i < 3; i++)
            waits_here();
    else if (!strcmp(what, "children"))
        children(words[0]);
    else if (strcmp(what, "nothing"))
        return 1;
    return 0;
}
