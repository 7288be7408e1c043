// One of two libraries whose `entry` is at the same address. This one has a large frame and saves registers.
__attribute__((noinline, noclone)) int leaf(volatile int *x) { return *x * 5; }
__attribute__((aligned(4096))) int entry(int x) {
    volatile int y[40];
    int sum = 0;
    for (int i = 0; i < 4; i++) {
        y[i * 9] = x + i;
        sum += leaf(&y[i * 9]) * x;
    }
    return sum + leaf(&y[9]);
}
