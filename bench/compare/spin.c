/* Work of so many thousand steps, in user code: spin STEPS */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    long steps = (argc > 1 ? atol(argv[1]) : 20000) * 1000;
    volatile double x = 1;
    for (long step = 0; step < steps; step++)
        x = x * 1.0000001 + 1e-9;
    printf("%ld steps\n", steps);
    return 0;
}
