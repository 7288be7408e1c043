// Functions that begin with one instruction each. Calls the one that is named, prints whether the kernel mapped an area for
// instructions that it single-steps (`[uprobes]`), and waits for the end of its input.
#include <stdio.h>
#include <string.h>

#define FUNCTION(name, code) \
    __asm__(".text\n.p2align 6\n.globl " #name "\n.type " #name ",@function\n" #name ":\n" code "\nret\n.size " #name ", .-" #name "\n"); \
    void name(void)

FUNCTION(begins_push, "push %rbx\npop %rbx");
FUNCTION(begins_nop, "nop");
FUNCTION(begins_long_nop, ".byte 0x66,0x0f,0x1f,0x44,0,0");
FUNCTION(begins_endbr, "endbr64\npush %rbx\npop %rbx");
FUNCTION(begins_test, "test %rdi,%rdi\nje 1f\nnop\n1:");
FUNCTION(begins_move, "mov %rdi,%rax");
FUNCTION(begins_load, "mov -8(%rsp),%rax");
FUNCTION(begins_sub, "sub $8,%rsp\nadd $8,%rsp");
FUNCTION(begins_jump, "jmp 1f\n1:");

static const struct { const char *name; void (*call)(void); } FUNCTIONS[] = {
    {"begins_push", begins_push}, {"begins_nop", begins_nop},   {"begins_long_nop", begins_long_nop},
    {"begins_endbr", begins_endbr}, {"begins_test", begins_test}, {"begins_move", begins_move},
    {"begins_load", begins_load}, {"begins_sub", begins_sub},   {"begins_jump", begins_jump},
};

int main(int count, char **arguments) {
    char line[512];
    int stepped = 0;
    for (size_t i = 0; count > 1 && i < sizeof FUNCTIONS / sizeof *FUNCTIONS; i++)
        for (int call = 0; !strcmp(arguments[1], FUNCTIONS[i].name) && call < 10; call++)
            FUNCTIONS[i].call();
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        stepped |= strstr(line, "[uprobes]") != NULL;
    puts(stepped ? "stepped" : "not stepped");
    fflush(stdout);
    while (getchar() != EOF) {}
    return 0;
}
