/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* Return addresses, instructions and signal frames of aarch64, as walks need them. Part of walk.h; x86_64walk.h has the same names.
 *
 * A call leaves its return address in the link register (x30). A function that calls others saves it anywhere in its frame, where it
 * may be signed (pointer authentication). Instructions: Arm Architecture Reference Manual, C6.2. */
#ifndef PLUMB_AARCH64WALK_H
#define PLUMB_AARCH64WALK_H

/* The address in a word that may be signed. Programs have no code above 48 bits, unless they ask for it. */
#define CODE_ADDRESS(word) ((word) & 0xffffffffffffull)

/* The kernel maps no page of system calls here. */
INLINE int in_vsyscall(struct walk *walk, u64 *rule)
{
    walk->why = WHY_UNMAPPED;
    return 0;
}

/* Bytes below the stack pointer that an epilogue may have popped (crates/unwind/src/apply.rs). */
#define POPPED 512

/* Goes to the caller of a frame with this CFA, whose return address is as many words from it; 0: it is in the link register. Only a
 * frame that has called nothing still has it there. */
INLINE int to_caller(struct walk *walk, u64 cfa, s64 words)
{
    u64 pc = walk->link;
    /* A return address that an epilogue has popped is in its register again. */
    u64 below = walk->sp - (cfa + 8 * words);
    if (!words || (!walk->is_return && below - 1 < POPPED)) {
        walk->why = WHY_NO_REGISTER;
        if (walk->is_return || (cfa != walk->sp && !advance(walk, cfa)))
            return 0;
    } else {
        if (!advance(walk, cfa))
            return 0;
        walk->why = WHY_UNREADABLE;
        if (env_read(walk->slot, cfa + 8 * words, &pc))
            return 0;
    }
    walk->pc = CODE_ADDRESS(pc);
    walk->sp_is_guess = 0;
    return 1;
}

/* The saved frame pointer is popped together with the return address above it. Go has that on top of the stack. */
#define FP_BELOW 8
/* Whether only the frame pointer says where the frame is. */
#define SP_IS_GUESS(walk) ((walk)->sp_is_guess)

/* Stubs of procedure linkage tables have no frame, and those that python -X perf makes have records. */
#define PLT_CFA(walk, value) ((walk)->sp)
INLINE int at_trampoline(struct walk *walk, u64 *rule)
{
    return 0;
}

/* The page of probes is the last one of user memory, of 48 bits or of 52: see undo_probe. */
#define NEAR_USER_END(pc) ((pc) >> 36 == 0xfff || (pc) >> 40 == 0xfff)
/* Bytes of the code to which functions with return probes return: a breakpoint. */
#define PROBE_CODE 3
/* The stack address that the kernel notes for a return probe of the function that was called from here: the stack pointer at the call. */
#define PROBED_AT(walk) ((walk)->sp)

/* Goes to the code that a signal interrupted. The numbers are offsets in struct rt_sigframe (arch/arm64/kernel/signal.c): siginfo has 128
 * bytes, and 184 of ucontext come before x0. */
APART int leave_signal(struct walk *walk)
{
    if (!walk)
        return 0;
    u64 sp, registers = walk->sp + 128 + 184;
    walk->why = walk->sp_is_guess ? WHY_ODD : WHY_UNREADABLE;
    if (env_read(walk->slot, registers + 8 * 29, &walk->fp) || env_read(walk->slot, registers + 8 * 30, &walk->link) ||
        env_read(walk->slot, registers + 8 * 31, &sp) || env_read(walk->slot, registers + 8 * 32, &walk->pc))
        return 0;
    if (walk->sp_is_guess || !advance(walk, sp))
        return 0;
    walk->sp = sp;
    walk->fp_slot = 0;
    walk->is_return = 0;
    return 1;
}

/* Whether code begins with what a signal handler returns to: mov x8, #139; svc #0. */
#define LEAVES_SIGNAL(code) ((code) == 0xd4000001d2801168ull)

/* Returns whether the eight bytes before a return address end with a call, as crates/unwind/src/scan/calls.rs does: bl, blr, blraa. */
INLINE u32 call_before(u64 code)
{
    u32 call = code >> 32;
    return call >> 26 == 0x25 || (call & 0xfefff000) == 0xd63f0000;
}

#endif
