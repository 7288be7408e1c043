/* Likewise, in coroutines (ucontext), each with a stack of its own. */
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <ucontext.h>

#define UNIT 2000000

static ucontext_t back, routines[3];
static char stacks[3][65536];
static volatile uint32_t x = 1;

#define WORK(name, units)                                                                                                                    \
    __attribute__((noinline)) void name(void)                                                                                                \
    {                                                                                                                                        \
        uint32_t y = x;                                                                                                                      \
        for (int i = 0; i < units * UNIT; i++)                                                                                               \
            y = y * 1664525u + 1013904223u;                                                                                                  \
        x = y;                                                                                                                               \
    }
WORK(sixty, 6)
WORK(thirty, 3)
WORK(ten, 1)

static void routine(int number)
{
    for (;;) {
        (number == 0 ? sixty : number == 1 ? thirty : ten)();
        swapcontext(&routines[number], &back);
    }
}

int main(int count, char **words)
{
    time_t end = time(NULL) + (count > 1 ? atoi(words[1]) : 3);
    for (int i = 0; i < 3; i++) {
        getcontext(&routines[i]);
        routines[i].uc_stack.ss_sp = stacks[i];
        routines[i].uc_stack.ss_size = sizeof(stacks[i]);
        makecontext(&routines[i], (void (*)(void))routine, 1, i);
    }
    while (time(NULL) < end)
        for (int i = 0; i < 3; i++)
            swapcontext(&back, &routines[i]);
    return 0;
}
