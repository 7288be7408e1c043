/* Twelve functions with known shares of the time: shares ROUNDS [STEPS OF f1]

   A round takes some microseconds and calls each of them for as many steps as its share says, all of the same cost: 300, 200, 150,
   100, 80, 60, 40, 30, 20, 10, 7 and 3 of 1,000. f1 has a fifth. */
#include <stdio.h>
#include <stdlib.h>

static double state = 1;

#define WORK(name) \
    __attribute__((noinline)) static void name(long steps) \
    { \
        double x = state; \
        for (long step = 0; step < steps; step++) { \
            x = x * 1.0000001 + 1e-9; \
            /* Their names keep compilers from taking them for one function. */ \
            __asm__ volatile("# " #name : "+x"(x)); \
        } \
        state = x; \
    }
WORK(f0) WORK(f1) WORK(f2) WORK(f3) WORK(f4) WORK(f5) WORK(f6) WORK(f7) WORK(f8) WORK(f9) WORK(f10) WORK(f11)

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 100000;
    long steps = argc > 2 ? atol(argv[2]) : 2000;
    for (long round = 0; round < rounds; round++) {
        f0(3000), f1(steps), f2(1500), f3(1000), f4(800), f5(600), f6(400), f7(300), f8(200), f9(100), f10(70), f11(30);
        if (state > 2)
            state = 1;
    }
    printf("%ld rounds\n", rounds);
    return 0;
}
