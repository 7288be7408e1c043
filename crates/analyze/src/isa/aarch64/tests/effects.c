/* Finds by trial which registers each instruction reads and writes: it runs it on many states that differ in one register.
   Input: instruction words, 4 bytes each. Output: a line each, `word written read`, each a mask of x0 to x29, the flags (bit 31) and
   v0 to v31 (bits 32 to 63), and for some states x0 to x29 before and after it; or `word -` if it does not run. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* States whose values are printed. */
#define SHOWN 2

struct state {
    uint64_t x[30];
    uint64_t flags, unused;
    uint64_t v[32][2];
};

void run(const struct state *in, struct state *out, void *code);
__asm__(
    ".text\n.global run\nrun:\n"
    "stp x29, x30, [sp, #-176]!\nstp x19, x20, [sp, #16]\nstp x21, x22, [sp, #32]\nstp x23, x24, [sp, #48]\nstp x25, x26, [sp, #64]\n"
    "stp x27, x28, [sp, #80]\nstp d8, d9, [sp, #96]\nstp d10, d11, [sp, #112]\nstp d12, d13, [sp, #128]\nstp d14, d15, [sp, #144]\n"
    "str x1, [sp, #160]\nmov x30, x2\nmov x29, x0\n"
    "add x1, x0, #256\n"
    "ldp q0, q1, [x1]\nldp q2, q3, [x1, #32]\nldp q4, q5, [x1, #64]\nldp q6, q7, [x1, #96]\n"
    "ldp q8, q9, [x1, #128]\nldp q10, q11, [x1, #160]\nldp q12, q13, [x1, #192]\nldp q14, q15, [x1, #224]\n"
    "ldp q16, q17, [x1, #256]\nldp q18, q19, [x1, #288]\nldp q20, q21, [x1, #320]\nldp q22, q23, [x1, #352]\n"
    "ldp q24, q25, [x1, #384]\nldp q26, q27, [x1, #416]\nldp q28, q29, [x1, #448]\nldp q30, q31, [x1, #480]\n"
    "ldr x1, [x29, #240]\nmsr nzcv, x1\n"
    "ldp x0, x1, [x29]\nldp x2, x3, [x29, #16]\nldp x4, x5, [x29, #32]\nldp x6, x7, [x29, #48]\nldp x8, x9, [x29, #64]\n"
    "ldp x10, x11, [x29, #80]\nldp x12, x13, [x29, #96]\nldp x14, x15, [x29, #112]\nldp x16, x17, [x29, #128]\nldp x18, x19, [x29, #144]\n"
    "ldp x20, x21, [x29, #160]\nldp x22, x23, [x29, #176]\nldp x24, x25, [x29, #192]\nldp x26, x27, [x29, #208]\nldp x28, x29, [x29, #224]\n"
    "blr x30\n"
    "ldr x30, [sp, #160]\n"
    "stp x0, x1, [x30]\nstp x2, x3, [x30, #16]\nstp x4, x5, [x30, #32]\nstp x6, x7, [x30, #48]\nstp x8, x9, [x30, #64]\n"
    "stp x10, x11, [x30, #80]\nstp x12, x13, [x30, #96]\nstp x14, x15, [x30, #112]\nstp x16, x17, [x30, #128]\nstp x18, x19, [x30, #144]\n"
    "stp x20, x21, [x30, #160]\nstp x22, x23, [x30, #176]\nstp x24, x25, [x30, #192]\nstp x26, x27, [x30, #208]\nstp x28, x29, [x30, #224]\n"
    "mrs x0, nzcv\nstr x0, [x30, #240]\nadd x1, x30, #256\n"
    "stp q0, q1, [x1]\nstp q2, q3, [x1, #32]\nstp q4, q5, [x1, #64]\nstp q6, q7, [x1, #96]\n"
    "stp q8, q9, [x1, #128]\nstp q10, q11, [x1, #160]\nstp q12, q13, [x1, #192]\nstp q14, q15, [x1, #224]\n"
    "stp q16, q17, [x1, #256]\nstp q18, q19, [x1, #288]\nstp q20, q21, [x1, #320]\nstp q22, q23, [x1, #352]\n"
    "stp q24, q25, [x1, #384]\nstp q26, q27, [x1, #416]\nstp q28, q29, [x1, #448]\nstp q30, q31, [x1, #480]\n"
    "ldp d8, d9, [sp, #96]\nldp d10, d11, [sp, #112]\nldp d12, d13, [sp, #128]\nldp d14, d15, [sp, #144]\n"
    "ldp x19, x20, [sp, #16]\nldp x21, x22, [sp, #32]\nldp x23, x24, [sp, #48]\nldp x25, x26, [sp, #64]\nldp x27, x28, [sp, #80]\n"
    "ldp x29, x30, [sp], #176\nret\n");

static sigjmp_buf back;

static void fails(int signal) {
    siglongjmp(back, signal);
}

static uint64_t seed = 7;

static uint64_t any(void) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return seed >> 33 ^ seed << 31;
}

/* Values that arithmetic of some kind depends on: any bits, small numbers, floating-point numbers near 1. */
static uint64_t value(int trial) {
    uint64_t bits = any();
    switch (trial % 5) {
    case 0: return bits;
    case 1: return bits & 0x0f0f0f0f0f0f0f0f;
    case 2: return 0x3ff0000000000000 | bits >> 12;
    case 3: return (0x3f800000u | (bits & 0x7fffff)) | (uint64_t)(0x3f800000u | (bits >> 40 & 0x7fffff)) << 32;
    default: return (0x3c003c003c003c00 | (bits & 0x03ff03ff03ff03ff)) ^ (bits >> 20 & 0x8000800080008000);
    }
}

static void fill(struct state *state, int trial) {
    for (int at = 0; at < 30; at++) state->x[at] = value(trial);
    for (int at = 0; at < 32; at++) state->v[at][0] = value(trial), state->v[at][1] = value(trial);
    state->flags = any() & 0xf0000000;
    state->unused = 0;
}

static int differs(const struct state *one, const struct state *other, int at) {
    if (at < 30) return one->x[at] != other->x[at];
    if (at == 31) return one->flags != other->flags;
    return at > 31 && memcmp(one->v[at - 32], other->v[at - 32], 16) != 0;
}

int main(void) {
    uint32_t *code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint32_t word;
    signal(SIGILL, fails), signal(SIGSEGV, fails), signal(SIGBUS, fails), signal(SIGTRAP, fails);
    while (fread(&word, 4, 1, stdin) == 1) {
        uint64_t written = 0, read = 0;
        struct state before[SHOWN], after[SHOWN];
        code[0] = word, code[1] = 0xd65f03c0;
        __builtin___clear_cache((char *)code, (char *)(code + 2));
        if (sigsetjmp(back, 1)) {
            printf("%08x -\n", word);
            continue;
        }
        for (int trial = 0; trial < 10; trial++) {
            struct state in, changed, out, other;
            fill(&in, trial);
            run(&in, &out, code);
            if (trial < SHOWN) before[trial] = in, after[trial] = out;
            for (int at = 0; at < 64; at++) written |= (uint64_t)differs(&in, &out, at) << at;
            for (int at = 0; at < 64; at++) {
                struct state random;
                fill(&random, trial);
                changed = in;
                if (at < 30) changed.x[at] = random.x[at];
                else if (at == 31) changed.flags = random.flags;
                else if (at > 31) memcpy(changed.v[at - 32], random.v[at - 32], 16);
                else continue;
                run(&changed, &other, code);
                for (int to = 0; to < 64; to++) {
                    /* A register that is not written keeps its value. */
                    int kept = to == at && !(written >> at & 1);
                    read |= (uint64_t)(!kept && differs(&out, &other, to)) << at;
                }
            }
        }
        printf("%08x %016lx %016lx", word, written, read);
        for (int trial = 0; trial < SHOWN; trial++) {
            for (int at = 0; at < 30; at++) printf(" %lx", before[trial].x[at]);
            for (int at = 0; at < 30; at++) printf(" %lx", after[trial].x[at]);
        }
        putchar('\n');
    }
    return 0;
}
