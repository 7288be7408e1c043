/* Works at the bottom of 40 KiB of stack. */
static volatile unsigned long sink;

__attribute__((noinline)) int down(int depth) {
  volatile char frame[200];
  frame[depth % 200] = (char)depth;
  if (depth > 0) return down(depth - 1) + frame[depth % 200];
  for (long i = 0; i < 600000000; i++) sink += i;
  return frame[0];
}

int main(void) { return down(200) & 0; }
