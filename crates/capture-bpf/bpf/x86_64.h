/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* x86_64 as the programs see it: user registers, arguments of system calls, thread pointer. Part of arch.h, which says what another
 * architecture has to define. */
#ifndef PLUMB_X86_64_H
#define PLUMB_X86_64_H

/* uapi/asm/ptrace.h, struct pt_regs: registers as user space left them, and the context of a program at a uprobe. They are part of the
 * kernel's ABI, so no field is looked up. */
struct user_pt_regs {
    unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct thread_struct {
    unsigned long fsbase;
};

struct thread_info {
    u32 status;
};

#pragma clang attribute pop

/* The unit of vm_pgoff. */
#define PAGE_SHIFT 12

#define USER_PC(regs) ((regs)->ip)
#define USER_SP(regs) ((regs)->sp)
#define USER_FP(regs) ((regs)->bp)

/* asm/segment.h: __USER_CS and __USER32_CS; the lowest two bits are the privilege level, 0 in the kernel. */
#define IS_USER(regs) ((regs)->cs & 3)
#define IS_USER_64(regs) (((regs)->cs & 0xffff) == 0x33)
#define IS_USER_32(regs) (((regs)->cs & 0xffff) == 0x23)

/* asm/thread_info.h: in a system call of 32 bits */
#define TS_COMPAT 2
#define IS_COMPAT(task) (OPTIONAL((task)->thread_info.status, 0) & TS_COMPAT)

/* Saved as the task was switched out. */
#define THREAD_POINTER(task) OPTIONAL((task)->thread.fsbase, 0)

/* The descriptor begins with the block that the pointer leads to. */
#define IS_DESCRIPTOR(pointer, id) ((pointer) == (id))

#define CALL_NUMBER(regs) ((s64)(regs)->orig_ax)
#define CALL_ARGUMENT_0(regs) ((regs)->di)
#define CALL_ARGUMENT_1(regs) ((regs)->si)

/* Stores the arguments of a system call. */
INLINE void call_arguments(u64 *to, struct user_pt_regs *regs, u32 compat)
{
    to[0] = compat ? (u32)regs->bx : regs->di;
    to[1] = compat ? (u32)regs->cx : regs->si;
    to[2] = compat ? (u32)regs->dx : regs->dx;
    to[3] = compat ? (u32)regs->si : regs->r10;
    to[4] = compat ? (u32)regs->di : regs->r8;
    to[5] = compat ? (u32)regs->bp : regs->r9;
}

/* Stores the general registers by DWARF number (System V ABI, figure 3.36), which is not the order of the structure. */
INLINE void user_registers(u64 *to, struct user_pt_regs *regs)
{
    to[0] = regs->ax, to[1] = regs->dx, to[2] = regs->cx, to[3] = regs->bx;
    to[4] = regs->si, to[5] = regs->di, to[6] = regs->bp, to[7] = regs->sp;
    to[8] = regs->r8, to[9] = regs->r9, to[10] = regs->r10, to[11] = regs->r11;
    to[12] = regs->r12, to[13] = regs->r13, to[14] = regs->r14, to[15] = regs->r15;
}

#endif
