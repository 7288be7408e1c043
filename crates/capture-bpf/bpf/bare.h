/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* Steps of a walk through code without rules. In files they use words of the stack and the frame pointer; in code that no file backs,
 * the current instructions and the frame pointer. Part of walk.h. */
#ifndef PLUMB_BARE_H
#define PLUMB_BARE_H

/* Whether scan_step has the next step. */
#define IS_SCANNING(walk) ((walk)->scanned)

/* Functions are assumed to be no larger. */
#define FUNCTION_BYTES (1u << 16)

/* Returns whether a function with a rule of this kind jumps through memory: only the loader knows to which function. */
INLINE int is_imported(u32 kind, u64 target)
{
    u64 code;
    return kind == KIND_PLT || (!env_peek(target, &code) && JUMPS_THROUGH_MEMORY(code));
}

/* Returns whether the call before an address may have called the current code, which is in a file with rules for other code. 1: an indirect
 * call may; 2: a direct call leads less than FUNCTION_BYTES before this code; 3: it leads less than 256 bytes before. */
INLINE u32 calls_here(struct walk *walk, struct Space *space, u64 address)
{
    u64 code, rule = 0;
    if (env_peek(address - 8, &code))
        return 0;
    u32 call = call_before(code);
    if (call != 2)
        return call;
    u64 target = CALL_TARGET(address, code);
    u32 kind = rule_at(walk, space, target, &rule) ? rule & 0xff : 0xff;
    if (kind != KIND_MISSING_HERE)
        return is_imported(kind, target);
    if (target > walk->pc || walk->pc - target >= FUNCTION_BYTES)
        return 0;
    return walk->pc - target < 256 ? 3 : 2;
}

/* Returns whether a stack slot of a frame without rules is the return address according to the frame pointer; or, in the innermost
 * frame, whether it is the topmost word and leads to code without rules too (is_bare). Such functions have frame pointers or no frame. */
INLINE int at_record(struct walk *walk, u64 slot, int is_bare)
{
    if (!walk->is_return && slot == walk->sp)
        return is_bare;
    return !walk->fp_slot && slot == walk->fp + 8 && slot - walk->sp >= 8;
}

/* Goes to the caller whose return address is at slot. */
INLINE int go_to(struct walk *walk, u64 pc, u64 slot, u32 found)
{
    walk->pc = pc;
    walk->sp = slot + 8;
    walk->is_return = 1;
    walk->scanned = 0;
    walk->found = found;
    return 1;
}

/* Handles a word that leads to code without rules too. If its call leads just before the program counter, it is the caller. For a call
 * that leads further away, or through a pointer, only the surrounding code tells which function it calls: another walker examines that. */
INLINE int bare_caller(struct walk *walk, struct Space *space, u64 pc, u64 slot)
{
    u32 call = calls_here(walk, space, pc);
    walk->why = WHY_ODD;
    walk->scans += call == 3;
    return !call || (call == 3 && go_to(walk, pc, slot, BY_SCAN));
}

/* Examines the next word of the stack of a frame without rules. Returns 1 if it is the caller's return address, or there are more words
 * to examine. Like walk_checked in crates/unwind/src/scan it accepts a word that follows a call which may have led here, in code with
 * rules that lead to another call. */
APART int scan_step(struct walk *walk, struct Space *space)
{
    if (!walk || !space)
        return 0;
    u64 slot = ((walk->sp + 7) & ~7ull) + 8 * (u64)(walk->scanned - 1), pc, rule = 0, caller, code;
    if (walk->scanned == 1)
        frame_pointer(walk);
    walk->why = WHY_ODD;
    if (walk->scanned > SCANNED_WORDS || env_read(walk->slot, slot, &pc))
        return 0;
    walk->scanned++;
    /* Not an address of code: too small, too large, or on the stack. */
    if (pc < 1 << 16 || pc >> 47 || pc - slot + (8 << 20) < 16 << 20)
        return 1;
    int known = rule_at(walk, space, pc - 1, &rule);
    u32 kind = rule & 0xff;
    s64 value = (s32)(rule >> 32);
    if (at_record(walk, slot, known ? kind == KIND_MISSING_HERE : walk->why == WHY_ANONYMOUS) && calls_here(walk, space, pc))
        return (slot == walk->sp || !env_read(walk->slot, walk->fp, &walk->fp)) && go_to(walk, pc, slot, BY_FRAME_POINTER);
    if (known && kind == KIND_MISSING_HERE)
        return bare_caller(walk, space, pc, slot);
    int is_on_sp = kind == KIND_SP || kind == KIND_SP_WORD, is_on_fp = kind == KIND_FP || kind == KIND_FP_WORD;
    if (!known || (!is_on_sp && !is_on_fp && kind != KIND_ROOT))
        return 1;
    u32 call = calls_here(walk, space, pc);
    if (!call)
        return 1;
    /* Calls that have returned leave such words too. Only the frames further out distinguish them. */
    walk->why = WHY_ODD;
    if (call == 1)
        return 0;
    u64 sp = slot + 8, base = sp, cfa;
    /* The frame pointer is used only if it can be one of the caller's. */
    int has_fp = frame_pointer(walk) && walk->fp > slot && walk->fp - slot < 8 << 20;
    if (is_on_fp) {
        if (!has_fp)
            return 1;
        base = walk->fp;
    }
    if (kind != KIND_ROOT) {
        if (kind == KIND_SP || kind == KIND_FP)
            cfa = base + value;
        else if (env_read(walk->slot, base + (s64)(s16)value, &cfa))
            return 1;
        else if ((u32)value >> 16 != DRAP)
            cfa += (u32)value >> 16;
        if (cfa <= sp || env_read(walk->slot, cfa - 8, &caller))
            return 1;
        if (caller && (mapping_at(space, caller - 1) < 0 || env_peek(caller - 8, &code) || !call_before(code)))
            return 1;
    }
    walk->fp_slot = has_fp ? 0 : NOWHERE;
    walk->scans++;
    return go_to(walk, pc, slot, BY_SCAN);
}

/* Begins to scan for the caller of a frame without rules, in a file that has rules for other code. */
INLINE int missing_step(struct walk *walk)
{
    walk->why = WHY_ODD;
    if (walk->scans >= SCANNED_FRAMES)
        return 0;
    walk->scanned = 1;
    return 1;
}

/* Goes to the caller of an address without code that was called, as by a NULL pointer, where a signal interrupted that: nothing has run
 * since the call, so that the return address is on top of the stack. The signal's handler may be on another stack, whose copy has no
 * caller. Other cases are left to the walker in Rust (by_failed_call in fallback.rs). */
APART int leave_failed_call(struct walk *walk, struct Space *space)
{
    u64 pc, code;
    if (!walk || !space || walk->is_return || walk->count < 2)
        return 0;
    if (env_read(walk->slot, walk->sp, &pc) || mapping_at(space, pc - 1) < 0)
        return 0;
    return !env_peek(pc - 8, &code) && call_before(code) && go_to(walk, pc, walk->sp, BY_FRAME_POINTER);
}

/* Goes to the caller of a frame of code that no file backs, as the walker in Rust does first (fallback.rs): by the current
 * instructions, or else by the frame pointer. Only accepts a word that may be a return address; the rest is left to that walker. Old
 * kernels have little space for its variables. */
APART int made_step(struct walk *walk, struct Space *space)
{
    u64 word, pc, slot = 0;
    if (!walk || !space || env_peek(walk->pc, &word))
        return 0;
    if (LEAVES_SIGNAL(word))
        return 0;
    if (!walk->is_return)
        slot = edge_slot(walk, &word);
    if (slot) {
        if (env_read(walk->slot, slot, &pc) || !pc)
            return 0;
    } else {
        if (!frame_pointer(walk) || walk->fp & 7 || walk->fp - walk->sp > 8 << 20)
            return 0;
        slot = walk->fp + 8;
        if (env_read(walk->slot, walk->fp, &word) || env_read(walk->slot, slot, &pc))
            return 0;
        if (!pc && !word)
            walk->why = WHY_ROOT;
        if (!pc)
            return 0;
        walk->fp = word;
        int index = mapping_at(space, pc - 1);
        int in_file = index < 0 || space->mappings[index & (MAX_MAPPINGS - 1)].file != FILE_NONE;
        if (in_file && (env_peek(pc - 8, &word) || !call_before(word)))
            return 0;
    }
    walk->pc = pc;
    walk->sp = slot + 8;
    walk->is_return = 1;
    walk->found = BY_FRAME_POINTER;
    return 1;
}

#endif
