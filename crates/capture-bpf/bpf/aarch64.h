/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* aarch64 as the programs see it: user registers, arguments of system calls, thread pointer. Part of arch.h, which says what an
 * architecture defines. */
#ifndef PLUMB_AARCH64_H
#define PLUMB_AARCH64_H

/* uapi/asm/ptrace.h: the context of a program at a perf event, and the beginning of struct pt_regs. Part of the kernel's ABI, so no field is
 * looked up. */
struct user_pt_regs {
    u64 regs[31], sp, pc, pstate;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* asm/ptrace.h: registers as the kernel saved them. */
struct pt_regs {
    u64 orig_x0;
    s32 syscallno;
};

struct thread_struct {
    struct {
        unsigned long tp_value;
    } uw;
};

struct thread_info {
    unsigned long flags;
};

#pragma clang attribute pop

/* The unit of vm_pgoff: 4, 16 or 64 KiB, as the kernel was built. Set before loading. */
const volatile u32 page_shift = 12;
#define PAGE_SHIFT page_shift

#define USER_PC(regs) ((regs)->pc)
#define USER_SP(regs) ((regs)->sp)
#define USER_FP(regs) ((regs)->regs[29])
#define USER_LINK(regs) ((regs)->regs[30])

/* uapi/asm/ptrace.h: PSR_MODE_EL0t, PSR_MODE32_BIT, PSR_MODE_MASK. */
#define PSR_MODE_MASK 0xf
#define PSR_MODE32_BIT 0x10
#define IS_USER(regs) (!((regs)->pstate & PSR_MODE_MASK))
#define IS_USER_64(regs) (!((regs)->pstate & (PSR_MODE_MASK | PSR_MODE32_BIT)))
#define IS_USER_32(regs) (((regs)->pstate & (PSR_MODE_MASK | PSR_MODE32_BIT)) == PSR_MODE32_BIT)

/* asm/thread_info.h: a task of 32 bits. */
#define TIF_32BIT 22
#define IS_COMPAT(task) ((u32)(NUMBER((task)->thread_info.flags) >> TIF_32BIT) & 1)

/* Saved as the task was switched out: a thread that set its pointer and was not switched out since has another. */
#define THREAD_POINTER(task) NUMBER((task)->thread.uw.tp_value)

/* The descriptor ends at the pointer. Its length is the C library's own affair: 200 bytes in musl, 1,792 to 1,856 in glibc 2.31 to 2.41. Two of
 * glibc's, one after the other, are longer than this. */
#define DESCRIPTOR_BYTES 3072
#define IS_DESCRIPTOR(pointer, id) ((pointer) - (id) <= DESCRIPTOR_BYTES)

#define CALL_NUMBER(registers) ((s64)(s32)NUMBER(((struct pt_regs *)(registers))->syscallno))
/* x0 holds the result once the call ends. */
#define CALL_ARGUMENT_0(registers) NUMBER(((struct pt_regs *)(registers))->orig_x0)
#define CALL_ARGUMENT_1(registers) ((registers)->regs[1])

/* Stores the arguments of a system call. */
INLINE void call_arguments(u64 *to, struct user_pt_regs *regs, u32 compat)
{
    to[0] = compat ? (u32)CALL_ARGUMENT_0(regs) : CALL_ARGUMENT_0(regs);
    to[1] = compat ? (u32)regs->regs[1] : regs->regs[1];
    to[2] = compat ? (u32)regs->regs[2] : regs->regs[2];
    to[3] = compat ? (u32)regs->regs[3] : regs->regs[3];
    to[4] = compat ? (u32)regs->regs[4] : regs->regs[4];
    to[5] = compat ? (u32)regs->regs[5] : regs->regs[5];
}

/* Stores the general registers and the stack pointer by DWARF number (AADWARF64, section 4.1), which is their order in the structure. */
INLINE void user_registers(u64 *to, struct user_pt_regs *regs)
{
    to[0] = regs->regs[0], to[1] = regs->regs[1], to[2] = regs->regs[2], to[3] = regs->regs[3];
    to[4] = regs->regs[4], to[5] = regs->regs[5], to[6] = regs->regs[6], to[7] = regs->regs[7];
    to[8] = regs->regs[8], to[9] = regs->regs[9], to[10] = regs->regs[10], to[11] = regs->regs[11];
    to[12] = regs->regs[12], to[13] = regs->regs[13], to[14] = regs->regs[14], to[15] = regs->regs[15];
    to[16] = regs->regs[16], to[17] = regs->regs[17], to[18] = regs->regs[18], to[19] = regs->regs[19];
    to[20] = regs->regs[20], to[21] = regs->regs[21], to[22] = regs->regs[22], to[23] = regs->regs[23];
    to[24] = regs->regs[24], to[25] = regs->regs[25], to[26] = regs->regs[26], to[27] = regs->regs[27];
    to[28] = regs->regs[28], to[29] = regs->regs[29], to[30] = regs->regs[30], to[31] = regs->sp;
}

#endif
