/* Works below a frame of which nearly nothing is touched. */
static volatile unsigned long sink;

__attribute__((noinline)) static void works(void)
{
    for (unsigned long n = 300000; n--;)
        sink += n;
}

__attribute__((noinline)) static void roomy(void)
{
    volatile char room[24000];
    room[sizeof room - 1] = 1;
    works();
    sink += room[sizeof room - 1];
}

int main(void)
{
    for (int i = 0; i < 12000; i++)
        roomy();
    return 0;
}
