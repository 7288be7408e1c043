// Writes stacks of itself, as crates/unwind/tests/programs/depths.c does, but without signals, which framehop has no rules for: "depth" as magic,
// number of registers, registers by DWARF number, number of frames, their program counters, 1, address and size of the stack in words, its words.
// Usage: stacks SEED DEPTH. The seed selects the functions that call each other; they do so to about that depth.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unwind.h>

#define MAGIC 0x64657074u
#define REGISTERS 33
#define STACKS 100

extern char **environ;
typedef uintptr_t word;
static word *stack_end, registers[REGISTERS];
static unsigned seed, left, deepest;

static _Unwind_Reason_Code note(struct _Unwind_Context *context, void *argument) {
  word *trace = argument;
  trace[++trace[0]] = _Unwind_GetIP(context);
  return trace[0] < 398 ? _URC_NO_REASON : _URC_END_OF_STACK;
}

// Not inlined, and with a frame of its own, as its caller's registers are to be seen from outside.
__attribute__((noinline)) static void stack(word value) {
  register word *r asm("x9") = registers;
  asm volatile("stp x19, x20, [x9, #152]\n stp x21, x22, [x9, #168]\n stp x23, x24, [x9, #184]\n stp x25, x26, [x9, #200]\n"
               "stp x27, x28, [x9, #216]\n stp x29, x30, [x9, #232]\n mov x10, sp\n str x10, [x9, #248]\n adr x10, .\n str x10, [x9, #256]"
               : : "r"(r) : "x10", "memory");
  word trace[400] = {0};
  _Unwind_Backtrace(note, trace);
  word head[] = {MAGIC, REGISTERS}, *sp = (word *)registers[31], tail[] = {1, (word)sp, stack_end - sp};
  fwrite(head, sizeof head, 1, stdout);
  fwrite(registers, sizeof registers, 1, stdout);
  fwrite(trace, sizeof(word), 1 + trace[0], stdout);
  fwrite(tail, sizeof tail, 1, stdout);
  fwrite(sp, sizeof(word), stack_end - sp, stdout);
  asm volatile("" : : "r"(value) : "memory");
}

static unsigned next(void) { return (seed = seed * 1664525 + 1013904223) >> 8; }
static word go(word depth, word a, word b);

// Functions with frames of several sizes, and several registers to save.
#define SHAPE(N, SIZE)                                                              \
  __attribute__((noinline)) static word shape##N(word depth, word a, word b) {      \
    volatile word room[SIZE];                                                       \
    for (word i = 0; i < SIZE; i++) room[i] = a + i * b;                            \
    word c = a * N + 1, d = b ^ a, e = go(depth + 1, c, d), f = N % 3 ? go(depth + 1, d, e) : c; \
    word g = N % 5 ? e + f : go(depth + 1, f, c);                                   \
    return room[a % SIZE] + c * d + e * f + g + depth;                              \
  }
#define SHAPES(N) SHAPE(N##0, 1) SHAPE(N##1, 2) SHAPE(N##2, 3) SHAPE(N##3, 5) SHAPE(N##4, 8) SHAPE(N##5, 13) SHAPE(N##6, 21) SHAPE(N##7, 70)
SHAPES(1) SHAPES(2) SHAPES(3) SHAPES(4) SHAPES(5)
static int compare(const void *a, const void *b) {
  word x = *(const word *)a, y = *(const word *)b;
  return (int)(go(deepest, x, y) & 1) * 2 - 1;
}
static word sorting(word depth, word a, word b) {
  word all[] = {a, b, depth, a ^ b};
  qsort(all, 4, sizeof *all, compare);
  return all[0];
}
#define NAMES(N) shape##N##0, shape##N##1, shape##N##2, shape##N##3, shape##N##4, shape##N##5, shape##N##6, shape##N##7
static word (*const shapes[])(word, word, word) = {NAMES(1), NAMES(2), NAMES(3), NAMES(4), NAMES(5), sorting};

static word go(word depth, word a, word b) {
  if (!left) return a;
  if (depth > deepest / 2 && next() % 8 == 0) {
    left--;
    stack(a);
  }
  return depth > deepest + next() % (deepest / 3) ? a + b : shapes[next() % (sizeof shapes / sizeof *shapes)](depth, a, b);
}

int main(int count, char **arguments) {
  if (count < 3) return 2;
  seed = atoi(arguments[1]);
  deepest = atoi(arguments[2]);
  left = STACKS;
  stack_end = (word *)environ;
  while (left) go(0, 1, 2);
  return 0;
}
