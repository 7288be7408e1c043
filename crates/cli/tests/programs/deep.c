/* 20,000 calls below each other: more than are kept of a stack. */
volatile unsigned long sink;

__attribute__((noinline)) void spin(void)
{
    for (long i = 0; i < 1000000000; i++)
        sink += i;
}

__attribute__((noinline)) void deeper(int left)
{
    if (left)
        deeper(left - 1);
    else
        spin();
    sink++;
}

int main(void)
{
    deeper(20000);
    return 0;
}
