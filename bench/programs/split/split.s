# Likewise, in assembly with neither unwind information nor frame pointers.
    .globl sixty, thirty, ten
    .type sixty, @function
    .type thirty, @function
    .type ten, @function
    .text
sixty:
    push %rbx
    sub $16, %rsp
    mov $12000000, %ebx
1:  imul $1664525, %edi, %edi
    add $1013904223, %edi
    dec %ebx
    jnz 1b
    mov %edi, %eax
    add $16, %rsp
    pop %rbx
    ret
    .size sixty, . - sixty
thirty:
    push %rbx
    mov $6000000, %ebx
1:  imul $1664525, %edi, %edi
    add $1013904223, %edi
    dec %ebx
    jnz 1b
    mov %edi, %eax
    pop %rbx
    ret
    .size thirty, . - thirty
ten:
    mov $2000000, %ecx
1:  imul $1664525, %edi, %edi
    add $1013904223, %edi
    dec %ecx
    jnz 1b
    mov %edi, %eax
    ret
    .size ten, . - ten
    .section .note.GNU-stack, "", @progbits
