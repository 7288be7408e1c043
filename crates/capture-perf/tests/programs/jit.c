/* Code in anonymous memory that keeps frame pointers: a loop that calls a function which does nothing but make a frame
   and leave it. The function is at the page's begin, the loop 64 bytes on. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* push %rbp; mov %rsp,%rbp; pop %rbp; ret */
static const unsigned char inner[] = {0x55, 0x48, 0x89, 0xe5, 0x5d, 0xc3};
/* push %rbp; mov %rsp,%rbp; 1: call inner; dec %rdi; jne 1b; pop %rbp; ret */
static const unsigned char outer[] = {0x55, 0x48, 0x89, 0xe5, 0xe8, 0xb7, 0xff, 0xff, 0xff,
                                      0x48, 0xff, 0xcf, 0x75, 0xf6, 0x5d, 0xc3};

int main(void) {
  unsigned char *code = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(code, inner, sizeof inner);
  memcpy(code + 64, outer, sizeof outer);
  mprotect(code, 4096, PROT_READ | PROT_EXEC);
  ((void (*)(long))(code + 64))(400000000);
  /* The recorder reads the code some time after the samples, so it has to stay mapped. */
  sleep(2);
  return 0;
}
