// A library that is loaded and unloaded while threads are sampled.
__attribute__((noinline)) static unsigned long inner(unsigned long n) {
    volatile unsigned long sum = 0;
    for (unsigned long i = 0; i < n; i++) sum = sum * 3 + i;
    return sum;
}
unsigned long plugin_work(unsigned long n) { return inner(n) + 1; }
