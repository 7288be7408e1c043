// One of two libraries whose `entry` is at the same address. This one has a small frame.
__attribute__((noinline, noclone)) int leaf(int x) { return x * 3; }
__attribute__((aligned(4096))) int entry(int x) {
    volatile int y = leaf(x);
    return y + leaf(y) + leaf(y + 1);
}
