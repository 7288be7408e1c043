/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* Instructions, signal frames and addresses of x86_64, as walks need them. Part of walk.h; another architecture's has the same
 * names. */
#ifndef PLUMB_X86_64WALK_H
#define PLUMB_X86_64WALK_H

/* The page of the kernel's oldest system calls (asm/vsyscall.h). The kernel returns from them itself, so that the return address is on
 * top of the stack. */
#define VSYSCALL_PAGE 0xffffffffff600ull

/* Returns whether the current frame is of a call of the vsyscall page, and its rule. */
INLINE int in_vsyscall(struct walk *walk, u64 *rule)
{
    walk->why = WHY_UNMAPPED;
    *rule = KIND_SP | 8ull << 32;
    return !walk->is_return && walk->pc >> 12 == VSYSCALL_PAGE;
}

/* Goes to the caller of a frame with this CFA, below which the call has put the return address. As a function it takes 16 bytes more of the
 * stack, although it is inlined. */
#define to_caller(walk, cfa, words)                                                                                    \
    (advance(walk, cfa) && ((walk)->why = WHY_UNREADABLE, !env_read((walk)->slot, (cfa) - 8, &(walk)->pc)))

/* Nothing is kept below the stack pointer. */
#define FP_BELOW 0
/* sp is known in each frame. */
#define SP_IS_GUESS(walk) 0
#define by_known_record(walk, space, ra, fp) 0

/* The CFA in a stub of a procedure linkage table, which pushes a word in its instructions from `value` on. */
#define PLT_CFA(walk, value) ((walk)->sp + 8 + ((s64)((walk)->pc & 15) >= (value) ? 8 : 0))

/* Whether an address is near the end of user memory. */
#define NEAR_USER_END(pc) ((pc) >> 36 == 0x7ff)
/* Most bytes of the code to which functions with return probes return: an int3, since Linux 6.11 a system call of its own. */
#define PROBE_CODE 32
/* The stack address that the kernel notes for a return probe of the function that was called from here: that of the return address. */
#define PROBED_AT(walk) ((walk)->sp - 8)

/* Goes to the code that a signal interrupted. The numbers are offsets in struct ucontext of x86_64. */
INLINE int leave_signal(struct walk *walk)
{
    u64 pc, sp, fp;
    walk->why = WHY_UNREADABLE;
    if (env_read(walk->slot, walk->sp + 168, &pc) || env_read(walk->slot, walk->sp + 160, &sp) || env_read(walk->slot, walk->sp + 120, &fp))
        return 0;
    if (!advance(walk, sp))
        return 0;
    walk->pc = pc;
    walk->sp = sp;
    walk->fp = fp;
    walk->fp_slot = 0;
    walk->is_return = 0;
    return 1;
}

/* Whether code begins with what a signal handler returns to: mov $15, %rax; syscall. */
#define LEAVES_SIGNAL(code) ((code) == 0x0f0000000fc0c748ull)

/* Returns whether the eight bytes before a return address end with a call, as crates/unwind/src/scan/calls.rs does: 2 for a direct
 * call, 1 for a call through a register or memory. */
INLINE u32 call_before(u64 code)
{
    u32 two = code >> 48, three = code >> 40 & 0xffff, four = code >> 32 & 0xffffff, six = code >> 16 & 0xffff, seven = code >> 8 & 0xffff;
    if ((code >> 24 & 0xff) == 0xe8)
        return 2;
    /* ff /2: the second byte is the addressing mode, which determines the length. */
    if ((two & 0xf8ff) == 0xd0ff || ((two & 0xf8ff) == 0x10ff && (two >> 8 & 7) != 4 && (two >> 8 & 7) != 5))
        return 1;
    if (((three & 0xf8ff) == 0x50ff && (three >> 8 & 7) != 4) || three == 0x14ff)
        return 1;
    if ((four & 0xffff) == 0x54ff)
        return 1;
    if (((six & 0xf8ff) == 0x90ff && (six >> 8 & 7) != 4) || six == 0x15ff)
        return 1;
    return seven == 0x94ff;
}

/* The target of the direct call that ends the eight bytes before a return address. */
#define CALL_TARGET(address, code) ((address) + (s64)(s32)((code) >> 32))

/* Whether code begins with a jump through memory. */
#define JUMPS_THROUGH_MEMORY(code) (((code) & 0xffff) == 0x25ff)

/* Returns whether the current frame is of a stub that python -X perf makes for each function, and its rule. It reserves a word, calls the interpreter
 * and returns. It is recognised by the bytes around the return address: 48 83 ec 08, ff d1, 48 83 c4 08, c3. */
INLINE int at_trampoline(struct walk *walk, u64 *rule)
{
    u64 first, last;
    *rule = KIND_SP | 16ull << 32;
    if (walk->why != WHY_ANONYMOUS || !walk->is_return)
        return 0;
    if (env_read(walk->slot, walk->pc - 6, &first) || env_read(walk->slot, walk->pc - 3, &last))
        return 0;
    return first == 0x8348d1ff08ec8348ull && last == 0xc308c48348d1ff08ull;
}

/* Returns whether code begins with mov %rsp, %rbp, in either encoding. */
INLINE int moves_sp(u64 code)
{
    return (code & 0xffffff) == 0xe58948 || (code & 0xffffff) == 0xec8b48;
}

/* Returns whether code begins with ret or ret $n, with or without a prefix. */
INLINE int returns(u64 code)
{
    u32 first = code & 0xff;
    if (first == 0xf2 || first == 0xf3)
        first = code >> 8 & 0xff;
    return first == 0xc2 || first == 0xc3;
}

/* Returns the address of the return address of an innermost frame in a prologue or epilogue, which is recognised by the current code as
 * in crates/unwind/src/x86_64/edge.rs. Returns 0 elsewhere. */
INLINE u64 edge_slot(struct walk *walk, u64 *code)
{
    u64 entered = (u32)*code == 0xfa1e0ff3 ? *code >> 32 : *code;
    if ((entered & 0xff) == 0x55 && moves_sp(entered >> 8))
        return walk->sp;
    /* vzeroupper */
    if (returns((*code & 0xffffff) == 0x77f8c5 ? *code >> 24 : *code))
        return walk->sp;
    if (!moves_sp(*code) || env_peek(walk->pc - 1, code) || (*code & 0xff) != 0x55)
        return 0;
    walk->fp_slot = walk->sp;
    return walk->sp + 8;
}

#endif
