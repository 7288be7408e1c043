// Descends through functions of many shapes. At each depth, writes an unwinder's input (registers, a copy of the
// stack) and the result of the compiler's own unwinder. For aarch64 and 32-bit ARM.
//
// Output, in words: "depth" as magic, number of registers, registers by DWARF number, number of frames, their program
// counters, number of pieces of memory, and for each its address, its size in words and its content.
// Usage: depths SEED, where the seed selects which function calls which.
#define _GNU_SOURCE
#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#define MAGIC 0x64657074u
#define NOINLINE __attribute__((noinline, noclone))
#define DEPTH 30

extern char **environ;

#if defined(__aarch64__)
#define REGISTERS 33
#define CAPTURE(to)                                                                                                 \
  do {                                                                                                              \
    register uintptr_t *r asm("x9") = (to);                                                                         \
    asm volatile("stp x0, x1, [x9]\n stp x2, x3, [x9, #16]\n stp x4, x5, [x9, #32]\n stp x6, x7, [x9, #48]\n"        \
                 "stp x8, x9, [x9, #64]\n stp x10, x11, [x9, #80]\n stp x12, x13, [x9, #96]\n"                      \
                 "stp x14, x15, [x9, #112]\n stp x16, x17, [x9, #128]\n stp x18, x19, [x9, #144]\n"                 \
                 "stp x20, x21, [x9, #160]\n stp x22, x23, [x9, #176]\n stp x24, x25, [x9, #192]\n"                 \
                 "stp x26, x27, [x9, #208]\n stp x28, x29, [x9, #224]\n str x30, [x9, #240]\n"                      \
                 "mov x10, sp\n str x10, [x9, #248]\n adr x10, .\n str x10, [x9, #256]"                             \
                 :                                                                                                  \
                 : "r"(r)                                                                                           \
                 : "x10", "memory");                                                                                \
  } while (0)
#define TRAP "brk #1000"
#define TRAP_SIGNAL SIGTRAP
#define PC(context) ((context)->uc_mcontext.pc)
#define SP(context) ((context)->uc_mcontext.sp)
#define STACK_POINTER 31
#elif defined(__arm__)
#define REGISTERS 16
#define CAPTURE(to)                                                                                                 \
  do {                                                                                                              \
    register uintptr_t *r asm("ip") = (to);                                                                         \
    asm volatile("stmia ip, {r0-r11}\n str ip, [ip, #48]\n str sp, [ip, #52]\n str lr, [ip, #56]\n"                  \
                 "mov r3, pc\n str r3, [ip, #60]"                                                                   \
                 :                                                                                                  \
                 : "r"(r)                                                                                           \
                 : "r3", "memory");                                                                                 \
  } while (0)
#ifdef __thumb__
#define TRAP "udf.w #16"
#else
#define TRAP "udf #0"
#endif
#define TRAP_SIGNAL SIGILL
#define PC(context) ((context)->uc_mcontext.arm_pc)
#define SP(context) ((context)->uc_mcontext.arm_sp)
#define STACK_POINTER 13
#endif

// End of this thread's stack; below, end of the alternate stack, if a signal handler runs on one.
static __thread uintptr_t *stack_end;
static uintptr_t *signal_stack_end, *interrupted_sp;
// Code that handlers return to.
static uintptr_t *trampoline;

struct trace {
  uintptr_t count, pcs[400];
};

static _Unwind_Reason_Code note(struct _Unwind_Context *context, void *argument) {
  struct trace *trace = argument;
  trace->pcs[trace->count++] = _Unwind_GetIP(context);
  return trace->count < 400 ? _URC_NO_REASON : _URC_END_OF_STACK;
}

static void put(const void *bytes, size_t count) {
  if (fwrite(bytes, 1, count, stdout) != count) _exit(2);
}

static void put_word(uintptr_t word) { put(&word, sizeof word); }

static void put_piece(const uintptr_t *from, const uintptr_t *to) {
  put_word((uintptr_t)from);
  put_word(to - from);
  put(from, (to - from) * sizeof *from);
}

NOINLINE void probe(void) {
  static uintptr_t registers[REGISTERS];
  static struct trace trace;
  CAPTURE(registers);
  trace.count = 0;
  _Unwind_Backtrace(note, &trace);
  put_word(MAGIC);
  put_word(REGISTERS);
  put(registers, sizeof registers);
  put_word(trace.count);
  put(trace.pcs, trace.count * sizeof trace.pcs[0]);
  put_word(1 + (interrupted_sp != 0) + (trampoline != 0));
  put_piece((uintptr_t *)registers[STACK_POINTER], interrupted_sp ? signal_stack_end : stack_end);
  if (interrupted_sp) put_piece(interrupted_sp, stack_end);
  if (trampoline) put_piece(trampoline, trampoline + 4);
}

static unsigned random_state;

static unsigned next(unsigned below) {
  random_state = random_state * 1103515245 + 12345;
  return (random_state >> 16) % below;
}

typedef int function(int depth);
static function *const shapes[];
static int after_signal;
static volatile int zero;

// Goes one level deeper, into a random shape.
NOINLINE int deeper(int depth);

NOINLINE int plain(int depth) { return deeper(depth) + 1; }

NOINLINE int frameless(int depth) {
  // Captures its stack from a leaf before it has saved anything, if the compiler chooses so.
  if (depth > 1000) return depth;
  probe();
  return deeper(depth) * 3;
}

NOINLINE int variable(int depth) {
  volatile char bytes[depth * 8 + 16 + zero];
  bytes[depth] = (char)depth;
  int found = deeper(depth);
  return found + bytes[depth];
}

NOINLINE int allocated(int depth) {
  volatile int *memory = alloca((size_t)depth * 100 + 64);
  for (int i = 0; i < 16; i++) memory[i] = depth;
  int found = deeper(depth);
  volatile int *more = alloca((size_t)found % 64 + 16);
  more[0] = found;
  probe();
  return more[0] + memory[3];
}

NOINLINE int large(int depth) {
  volatile int words[5000];
  words[depth] = depth;
  int found = deeper(depth);
  return found + words[depth];
}

NOINLINE int larger(int depth) {
  volatile int words[40];
  volatile char bytes[30001];
  words[depth % 40] = depth;
  bytes[3000] = (char)depth;
  int found = deeper(depth);
  return found + words[depth % 40] + bytes[3000];
}

NOINLINE int saving(int depth) {
  int a = zero + depth, b = zero + 2, c = zero + 3, d = zero + 4, e = zero + 5, f = zero + 6, g = zero + 7;
  int h = zero + 8, i = zero + 9, j = zero + 10, k = zero + 11;
  int found = deeper(depth);
  return found + a * b + c * d + e * f + g * h + i * j + k;
}

NOINLINE int saving_few(int depth) {
  int a = zero + depth, b = zero + 2;
  int found = deeper(depth);
  return found + a * b;
}

NOINLINE int saving_doubles(int depth) {
  double a = depth + zero, b = a * 2, c = a + b, d = c * a, e = b + d;
  int found = deeper(depth);
  return found + (int)(a + b * c + d * e);
}

NOINLINE int saving_many_doubles(int depth) {
  double v[8];
  for (int i = 0; i < 8; i++) v[i] = depth * i + zero;
  double a = v[0], b = v[1], c = v[2], d = v[3], e = v[4], f = v[5], g = v[6], h = v[7];
  int found = deeper(depth), w = zero + 1, x = zero + 2;
  probe();
  return found + (int)(a + b * c + d * e + f * g * h) + w * x;
}

NOINLINE int many(int depth, int a, int b, int c, int d, int e, int f, int g, int h, int i, int j) {
  int found = deeper(depth);
  return found + a + b + c + d + e + f + g + h + i + j;
}

NOINLINE int with_many(int depth) { return many(depth, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10) + zero; }

NOINLINE int varied(int depth, ...) {
  va_list list;
  va_start(list, depth);
  int found = deeper(depth) + va_arg(list, int);
  found += va_arg(list, int);
  va_end(list);
  return found;
}

NOINLINE int with_varied(int depth) { return varied(depth, depth, 2, 3) + 1; }

static void clean(int *value) { zero = *value - *value; }

NOINLINE int with_cleanup(int depth) {
  // With -fexceptions, this function has a personality routine and its own table.
  int value __attribute__((cleanup(clean))) = depth;
  int found = deeper(depth);
  return found + value;
}

static int sort_depth;

static int compare(const void *left, const void *right) {
  if (sort_depth) {
    int depth = sort_depth;
    sort_depth = 0;
    probe();
    deeper(depth);
  }
  return *(const int *)left - *(const int *)right;
}

NOINLINE int sorting(int depth) {
  int values[] = {3, 1, 2, zero};
  sort_depth = depth;
  qsort(values, 4, sizeof values[0], compare);
  return values[depth % 4];
}

NOINLINE int searching(int depth) {
  int values[] = {1, 2, 3, 4}, key = zero + 2;
  sort_depth = depth;
  int *found = bsearch(&key, values, 4, sizeof values[0], compare);
  return found ? *found : 0;
}

static void go_on(void *returns_to) {
  trampoline = (uintptr_t *)((uintptr_t)returns_to & ~(uintptr_t)(sizeof(uintptr_t) - 1));
  probe();
  if (after_signal) {
    int depth = after_signal;
    after_signal = 0;
    deeper(depth);
  }
}

static void on_signal(int signal, siginfo_t *info, void *context) {
  (void)signal, (void)info, (void)context;
  go_on(__builtin_return_address(0));
  zero = 0;
}

static void on_plain_signal(int signal) {
  go_on(__builtin_return_address(0));
  zero = signal - signal;
}

static void on_trap(int signal, siginfo_t *info, void *argument) {
  ucontext_t *context = argument;
  (void)signal, (void)info;
  go_on(__builtin_return_address(0));
  PC(context) += 4;
}

static void on_other_stack(int signal, siginfo_t *info, void *argument) {
  ucontext_t *context = argument;
  (void)signal, (void)info;
  interrupted_sp = (uintptr_t *)SP(context);
  trampoline = (uintptr_t *)((uintptr_t)__builtin_return_address(0) & ~(uintptr_t)(sizeof(uintptr_t) - 1));
  probe();
  interrupted_sp = NULL;
}

NOINLINE int raising(int depth) {
  after_signal = depth;
  raise(SIGUSR1);
  return zero + depth;
}

NOINLINE int raising_plain(int depth) {
  after_signal = depth;
  raise(SIGALRM);
  return zero + depth;
}

NOINLINE int raising_apart(int depth) {
  raise(SIGUSR2);
  return deeper(depth) + 1;
}

// Keeps its return address in the link register, with and without a frame.
NOINLINE int leaf(int value) {
  value = value * 7 + zero;
  asm volatile("nop\n nop\n" TRAP "\n nop");
  return value + 1;
}

NOINLINE int leaf_with_frame(int value) {
  volatile int words[40];
  words[value % 40] = value;
  asm volatile("nop\n nop\n" TRAP "\n nop");
  return words[value % 40];
}

NOINLINE int trapping(int depth) {
  after_signal = depth;
  return leaf(depth) + 1;
}

NOINLINE int trapping_framed(int depth) {
  after_signal = depth;
  return leaf_with_frame(depth) + 1;
}

static function *const shapes[] = {
    plain,     frameless,     variable,     allocated, large,     larger,    saving,   saving_few,
    with_many, with_varied,   with_cleanup, sorting,   searching, raising,   trapping, trapping_framed,
    raising_apart, saving_doubles, saving_many_doubles, raising_plain,
};

NOINLINE int deeper(int depth) {
  probe();
  if (depth >= DEPTH) return depth;
  int found = shapes[next(sizeof shapes / sizeof shapes[0])](depth + 1);
  return found + zero;
}

// Gives this thread an alternate stack.
static void prepare(void) {
  static uintptr_t bytes[16384];
  stack_t stack = {.ss_sp = bytes, .ss_size = sizeof bytes};
  signal_stack_end = bytes + 16384;
  sigaltstack(&stack, NULL);
}

static void *in_thread(void *argument) {
  pthread_attr_t attributes;
  void *from;
  size_t size;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &from, &size);
  stack_end = (uintptr_t *)((char *)from + size);
  prepare();
  zero = deeper(DEPTH / 2) * 0;
  return argument;
}

static void handle(int signal, void (*handler)(int, siginfo_t *, void *), int flags) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_NODEFER | flags;
  sigaction(signal, &action, NULL);
}

int main(int count, char **arguments) {
  random_state = count > 1 ? (unsigned)atoi(arguments[1]) : 1;
  stack_end = (uintptr_t *)environ;
  prepare();
  handle(SIGUSR1, on_signal, 0);
  handle(SIGUSR2, on_other_stack, SA_ONSTACK);
  handle(TRAP_SIGNAL, on_trap, 0);
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_plain_signal;
  action.sa_flags = SA_NODEFER;
  sigaction(SIGALRM, &action, NULL);
  for (int i = 0; i < 3; i++) zero = deeper(0) * 0;
  pthread_t thread;
  pthread_create(&thread, NULL, in_thread, NULL);
  pthread_join(thread, NULL);
  return 0;
}
