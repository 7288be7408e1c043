/* Calls without frame pointers, and no library: what a recorded stack of a few hundred bytes needs rules for. */
typedef unsigned long u64;
static volatile u64 sink;
__attribute__((noinline)) static u64 spin(u64 times)
{
    u64 value = 1;
    while (times--) {
        value = value * 6364136223846793005ul + 1442695040888963407ul;
        __asm__ volatile("" : "+r"(value));
    }
    return value;
}
__attribute__((noinline)) static u64 down(int depth, u64 times)
{
    volatile u64 room[6] = { depth };
    u64 value = depth ? down(depth - 1, times) : spin(times);
    return value + room[0];
}
__attribute__((noinline)) static u64 middle(u64 times)
{
    u64 value = down(5, times);
    __asm__ volatile("" : "+r"(value));
    return value + 1;
}
void _start(void)
{
    for (int i = 0; i < 20; i++) sink += middle(4000000);
    register long number __asm__("x8") = 93;
    register long code __asm__("x0") = 0;
    __asm__ volatile("svc 0" ::"r"(number), "r"(code));
    for (;;);
}
