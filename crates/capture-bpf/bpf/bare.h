/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* Steps of a walk through code without rules. In files they use words of the stack and the frame pointer; in code that no file backs,
 * the current instructions and the frame pointer. Part of walk.h. */
#ifndef PLUMB_BARE_H
#define PLUMB_BARE_H

/* Functions are assumed to be no larger. */
#define FUNCTION_BYTES (1u << 16)

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

/* Returns whether a function with a rule of this kind jumps through memory: only the loader knows to which function. */
INLINE int is_imported(u32 kind, u64 target)
{
    u64 code;
    return kind == KIND_PLT || (!env_peek(target, &code) && (code & 0xffff) == 0x25ff);
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
    u64 target = address + (s64)(s32)(code >> 32);
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

/* Returns whether the current frame is of a stub that python -X perf makes for each function. It reserves a word, calls the interpreter
 * and returns. It is recognised by the bytes around the return address: 48 83 ec 08, ff d1, 48 83 c4 08, c3. */
INLINE int at_trampoline(struct walk *walk)
{
    u64 first, last;
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

/* Goes to the caller of a frame of code that no file backs, as the walker in Rust does first (fallback.rs): by the current
 * instructions, or else by the frame pointer. Only accepts a word that may be a return address; the rest is left to that walker. Old
 * kernels have little space for its variables. */
APART int made_step(struct walk *walk, struct Space *space)
{
    u64 word, pc, slot = 0;
    if (!walk || !space || env_peek(walk->pc, &word))
        return 0;
    /* The code that a signal handler returns to: mov $15, %rax; syscall. */
    if (word == 0x0f0000000fc0c748ull)
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
