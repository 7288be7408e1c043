/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* Steps of a walk through code without rules, where frames are records at the frame pointer (AAPCS64, section 6.4.6): the caller's frame
 * pointer, and the return address above it. A record is anywhere in its frame, so that it does not say where the frame ends. Part of
 * walk.h; bare.h has the same names for architectures whose calls push the return address. */
#ifndef PLUMB_RECORDS_H
#define PLUMB_RECORDS_H

/* Scanning the words of the stack never begins. */
#define IS_SCANNING(walk) 0
INLINE int scan_step(struct walk *walk, struct Space *space)
{
    walk->why = WHY_ODD;
    return 0;
}

/* Goes to the caller whose return address is in the record at the frame pointer, as the walker in Rust does (by_frame_pointer in fallback.rs).
 * Returns 0 if there is none. */
INLINE int by_record(struct walk *walk, struct Space *space)
{
    u64 word;
    if (!frame_pointer(walk) || walk->fp & 7 || walk->fp - walk->sp > 8 << 20)
        return 0;
    u64 record = walk->fp;
    if (env_read(walk->slot, record + 8, &word))
        return 0;
    u64 pc = CODE_ADDRESS(word);
    if (!pc) {
        if (!env_read(walk->slot, record, &word) && !word)
            walk->why = WHY_ROOT;
        return 0;
    }
    int index = mapping_at(space, pc - 1);
    int in_file = index < 0 || space->mappings[index & (MAX_MAPPINGS - 1)].file != FILE_NONE;
    if (in_file && (env_peek(pc - 8, &word) || !call_before(word)))
        return 0;
    if (!advance(walk, record + 16))
        return 0;
    walk->pc = pc;
    walk->sp = record + 16;
    walk->fp_slot = record;
    walk->is_return = 1;
    walk->sp_is_guess = 1;
    return 1;
}

/* Goes to the caller of a frame without rules, in a file that has rules for other code: of the kernel's code to return from a signal. The rest
 * is left to the walker in Rust, which follows the instructions up to the return. */
APART int missing_step(struct walk *walk)
{
    u64 code;
    if (!walk || env_peek(walk->pc, &code))
        return 0;
    walk->why = WHY_ODD;
    return LEAVES_SIGNAL(code) && leave_signal(walk);
}

/* Goes to the caller of a frame of code that no file backs: of the kernel's code to return from a signal, or by the record. Whether an
 * innermost function has one only its instructions say, which the walker in Rust follows. */
APART int made_step(struct walk *walk, struct Space *space)
{
    u64 code;
    if (!walk || !space || !walk->is_return)
        return 0;
    if (!env_peek(walk->pc, &code) && LEAVES_SIGNAL(code))
        return leave_signal(walk);
    walk->found = BY_FRAME_POINTER;
    return by_record(walk, space);
}

/* Goes to the caller of a frame whose rule needs the stack pointer, which is not known. If the rule says that the frame has a record, it
 * also says where the frame ends. */
INLINE int by_known_record(struct walk *walk, struct Space *space, s64 ra, s64 fp)
{
    walk->why = WHY_ODD;
    if (!made_step(walk, space))
        return 0;
    u64 cfa = walk->sp - 16 - 8 * fp;
    if (fp && ra == fp + 1 && cfa >= walk->sp) {
        walk->sp = cfa;
        walk->sp_is_guess = 0;
    }
    return 1;
}

/* Goes to the caller of an address without code that was called, as by a NULL pointer, where a signal interrupted that: the return
 * address is in the link register. */
APART int leave_failed_call(struct walk *walk, struct Space *space)
{
    u64 pc, code;
    if (!walk || !space || walk->is_return || walk->count < 2)
        return 0;
    pc = CODE_ADDRESS(walk->link);
    if (mapping_at(space, pc - 1) < 0 || env_peek(pc - 8, &code) || !call_before(code))
        return 0;
    walk->pc = pc;
    walk->is_return = 1;
    walk->found = BY_FRAME_POINTER;
    return 1;
}

#endif
