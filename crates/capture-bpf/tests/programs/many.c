/* The program that uses CPU time, with 6,000 more functions that make its unwind table a large one. SEED makes it another
   program. */
#include "../../../capture-perf/tests/programs/burn.c"

const int seed = SEED;

__asm__(".text\n"
        ".rept 6000\n"
        ".cfi_startproc\n"
        "sub $24, %rsp\n"
        ".cfi_def_cfa_offset 32\n"
        "add $24, %rsp\n"
        ".cfi_def_cfa_offset 8\n"
        "ret\n"
        ".cfi_endproc\n"
        ".endr");
