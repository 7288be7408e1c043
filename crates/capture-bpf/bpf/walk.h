/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* The walk over a user stack by the rules of crates/unwind, with the results of its walker where it supports a case.
 *
 * The including file defines how memory, files and tables are accessed:
 *   int env_read(u32 slot, u64 at, u64 *value)  0 if the word could be read; slot as in the walk
 *   int env_peek(u64 at, u64 *value)            like env_read, for a word that is far from the others: code
 *   u64 env_return(u64 at)                      the return address that a probe has replaced at this address; 0: no probe did
 *   u64 env_stepped(u64 pc)                     the address of the probed instruction whose copy is executed here; 0: none is
 *   struct File *env_file(u32 number)           0 if there is none
 *   const u8 *env_chunk(u32 number)             0 if there is none; CHUNK_BYTES long
 *   struct RuleCache *env_cache(void)           0 if there is none; an interrupting walk may use it too
 * For a case that it does not support the walk sets a reason (WHY_...), and another walker takes over with the same registers. */
#ifndef PLUMB_WALK_H
#define PLUMB_WALK_H

/* Whether calls leave the return address in a register. Programs of a test name the architecture, as those for the kernel do. */
#if defined(__TARGET_ARCH_arm64) || (defined(__aarch64__) && !defined(__TARGET_ARCH_x86))
#define HAS_LINK_REGISTER
#endif

/* Kinds of rules: crates/unwind/src/rule.rs. */
enum { KIND_SP = 0, KIND_FP = 1, KIND_ROOT = 3, KIND_MISSING_HERE = 5 };

/* Location of the return address in words from the CFA, as Rule::return_address in crates/unwind/src/rule.rs. */
#define RETURN_ADDRESS(rule, fp) ((s8)((rule) >> 8) == -128 ? (fp) + 1 : (s8)((rule) >> 8))

/* Value of fp_slot: the frame pointer is not saved anywhere, so its value is unknown. */
#define NOWHERE 1

/* Rows before and after the expected one that are searched first. */
#define NEAR 64

/* The most jumps of one stack to lower addresses. */
#define MAX_JUMPS 16

struct walk {
    u64 pc;
    u64 sp;
    u64 fp;
    /* Address of the frame pointer's value; 0: the value is in fp. */
    u64 fp_slot;
#ifdef HAS_LINK_REGISTER
    /* The link register of an innermost or interrupted frame. */
    u64 link;
#endif
    u64 hash;
    /* The last mapping that was found, and its file. */
    u64 address;
    u32 file;
    u32 count;
#ifdef HAS_LINK_REGISTER
    u16 jumps;
    /* Whether sp is only known to be at least this. */
    u16 sp_is_guess;
#else
    u32 jumps;
    /* Words examined for the caller of the current frame, which has no rules, plus one; 0: not scanning. */
    u32 scanned;
    /* Frames found by scanning. */
    u32 scans;
#endif
    u32 is_return;
    u32 why;
    /* Coarse time, to recognise tables that are not used. */
    u32 now;
    /* Number of the draft whose window serves memory reads. */
    u32 slot;
    /* Method that found the current frame: one of the below. No more fields fit on the stack of old kernels. */
    u32 found;
};

enum { BY_RULE = 0, BY_SCAN = 1, BY_FRAME_POINTER = 2 };

INLINE u32 word_at(const u8 *chunk, u64 at)
{
    return *(const u32 *)(chunk + (at & (CHUNK_BYTES - 4)));
}

/* Returns the number of the mapping that contains an address, or -1. */
APART int mapping_at(struct Space *space, u64 address)
{
    if (!space)
        return -1;
    u8 *hint = &space->hints[(address >> 16) & (HINTS - 1)];
    u32 hinted = *hint & (MAX_MAPPINGS - 1);
    struct Mapping *mapping = &space->mappings[hinted];
    if (address - mapping->start < (u64)mapping->pages << 12)
        return hinted;
    for (u32 i = 0; i < MAX_MAPPINGS; i++) {
        mapping = &space->mappings[i];
        if (address - mapping->start < (u64)mapping->pages << 12) {
            *hint = i;
            return i;
        }
    }
    return -1;
}

/* Returns the stated address of an offset in a file, or -1. */
INLINE u64 stated(struct File *file, u64 offset)
{
    for (u32 i = 0; i < SEGMENTS; i++) {
        if (offset >= file->segments[i].begin && offset < file->segments[i].end)
            return offset + file->segments[i].delta;
    }
    return -1;
}

/* Looks up the rule for a stated address, as Table::lookup does. Returns 0 if there is none. */
APART int table_lookup(u32 number, u64 address, u64 *rule)
{
    struct File *file = env_file(number);
    for (int i = 1; i < (int)TABLE_PIECES && file && address >= file->end && file->next; i++)
        file = env_file(file->next);
    if (!file || !rule || address < file->base || address >= file->end)
        return 0;
    u64 page = (address - file->base) >> 16;
    if (page >= file->pages)
        return 0;
    const u8 *chunk = env_chunk(file->chunk);
    if (!chunk)
        return 0;
    u64 low = word_at(chunk, file->pages_at + 4 * page);
    u64 high = page + 1 < file->pages ? word_at(chunk, file->pages_at + 4 * (page + 1)) : file->rows;
    u64 last = (u32)(address << 16) | 0xffff;
    u64 rows = file->rows_at;
    /* Rows are spread nearly evenly over a page. A search around the interpolated position reads memory that is close together; halving
     * the page would read a dozen places that are in no cache. */
    u64 guess = low + ((high - low) * (address & 0xffff) >> 16);
    u64 below = guess - low > NEAR ? guess - NEAR : low;
    u64 above = high - guess > NEAR ? guess + NEAR : high;
    if (below < high && word_at(chunk, rows + 4 * below) <= last)
        low = below;
    if (above < high && word_at(chunk, rows + 4 * above) > last)
        high = above;
    /* A page has at most 65,536 rows. No branches, because the kernel's verifier would follow every combination of them. */
    for (int i = 0; i < 17; i++) {
        u64 middle = (low + high) >> 1;
        u64 goes_on = low - high;
        u64 is_right = word_at(chunk, rows + 4 * middle) - last - 1;
        OPAQUE(goes_on);
        OPAQUE(is_right);
        /* All ones where the difference is negative. */
        goes_on = (s64)goes_on >> 63;
        is_right = (s64)is_right >> 63;
        low += (middle + 1 - low) & is_right & goes_on;
        high += (middle - high) & ~is_right & goes_on;
    }
    if (!low)
        return 0;
    u64 row = word_at(chunk, rows + 4 * (u64)(low - 1)) & 0xffff;
    *rule = *(const u64 *)(chunk + ((file->rules_at + 8 * row) & (CHUNK_BYTES - 8)));
    return 1;
}

/* Check value that proves that a cached rule belongs to this tag, in case halves of two entries were mixed. */
INLINE u64 mark_of(u64 tag, u64 rule)
{
    return tag ^ rule * 0x9e3779b97f4a7c15ull;
}

INLINE int rule_at(struct walk *walk, struct Space *space, u64 address, u64 *rule)
{
    walk->address = address;
    walk->file = FILE_NONE;
    walk->why = WHY_UNMAPPED;
    int index = mapping_at(space, address);
    if (index < 0)
        return 0;
    struct Mapping *mapping = &space->mappings[index & (MAX_MAPPINGS - 1)];
    u32 number = mapping->file;
    u64 offset = address - mapping->start + mapping->offset;
    walk->file = number;
    walk->why = WHY_ANONYMOUS;
    if (number == FILE_NONE)
        return 0;
    struct RuleCache *cache = env_cache();
    if (!cache)
        return 0;
    u64 tag = offset << FILE_BITS | number;
    struct CachedRule *cached = &cache->rules[(tag * 0x9e3779b97f4a7c15ull >> 32) & (CACHED_RULES - 1)];
    /* An entry that two interrupting walks wrote together matches no tag. */
    u64 known = cached->rule;
    OPAQUE(known);
    if (cached->mark == mark_of(tag, known)) {
        *rule = known;
        return 1;
    }
    struct File *file = env_file(number);
    if (file && file->state == STATE_MEMORY)
        return 0;
    walk->why = WHY_NO_TABLE;
    if (!file || file->state != STATE_READY)
        return 0;
    if (file->used != walk->now)
        file->used = walk->now;
    walk->why = WHY_ODD;
    u64 address_there = stated(file, offset);
    if (!table_lookup(number, address_there, rule)) {
        /* Outside the addresses that have rules. */
        if (file->next || address_there == (u64)-1 || (address_there >= file->base && address_there < file->end))
            return 0;
        *rule = KIND_MISSING_HERE;
    }
    cached->rule = *rule;
    cached->mark = mark_of(tag, *rule);
    return 1;
}

/* Ensures that fp has the frame pointer's value, by reading it now if it was saved. */
INLINE int frame_pointer(struct walk *walk)
{
    if (walk->fp_slot) {
        if (env_read(walk->slot, walk->fp_slot, &walk->fp)) {
            walk->why = WHY_NO_REGISTER;
            return 0;
        }
        walk->fp_slot = 0;
    }
    return 1;
}

INLINE int advance(struct walk *walk, u64 sp)
{
    if (sp > walk->sp)
        return 1;
    walk->jumps++;
    walk->why = WHY_NOT_ADVANCING;
    return sp != walk->sp && walk->jumps <= MAX_JUMPS;
}

#ifdef HAS_LINK_REGISTER
#include "aarch64walk.h"
#elif defined(__TARGET_ARCH_x86) || defined(__x86_64__)
#include "x86_64walk.h"
#else
#error "there is no header for this architecture"
#endif

INLINE int is_above(u64 sp, u64 address)
{
    /* 16 MiB: more than arguments and environment can have. */
    return address > sp && address - sp < 16 << 20;
}

/* Returns whether the stack is as the kernel hands it to a new program, as the walker in Rust does (fallback.rs). Only called where the frame
 * pointer is 0, as it is then, so that neither the frame pointer nor the top of the stack would help. */
INLINE int at_entry(struct walk *walk)
{
    u64 count, first, last, end, environment, sp = walk->sp;
    if (!frame_pointer(walk) || walk->fp || sp & 15)
        return 0;
    if (env_read(walk->slot, sp, &count) || count < 1 || count >= (16 << 20) / 8)
        return 0;
    if (env_read(walk->slot, sp + 8, &first) || env_read(walk->slot, sp + 8 * count, &last) || env_read(walk->slot, sp + 8 * count + 8, &end) ||
        env_read(walk->slot, sp + 8 * count + 16, &environment))
        return 0;
    return is_above(sp, first) && is_above(sp, last) && !end && (!environment || is_above(sp, environment));
}

#ifdef HAS_LINK_REGISTER
#include "records.h"
#else
#include "bare.h"
#endif

/* Returns whether the frame has a caller. The outermost frame may have a return address of 0. But so may one whose rules are wrong, as in
 * parts of an interpreter that call each other: the other walker looks for its caller further out. A signal may interrupt a call of 0. */
INLINE int has_caller(struct walk *walk)
{
    if (walk->pc || !walk->is_return)
        return 1;
    walk->why = WHY_ODD;
    return 0;
}

/* Restores the address of the current frame if a probe has replaced it. The page of probes is near the end of user memory, where no code of
 * a program begins with a page. It has the code to which functions with return probes return: the word on the stack leads there, and while
 * a tool's program runs at such a probe, the innermost frame is that of its caller. Behind it are copies of probed instructions, which the
 * kernel executes by single steps. Not a part of walk_step, whose stack has no room. */
INLINE void undo_probe(struct walk *walk)
{
    u64 offset = walk->pc & 4095, pc;
    if (!NEAR_USER_END(walk->pc) || (walk->is_return && offset))
        return;
    if (!walk->is_return && (pc = env_stepped(walk->pc))) {
        walk->pc = pc;
        return;
    }
    if (offset > PROBE_CODE || !(pc = env_return(PROBED_AT(walk))))
        return;
    walk->pc = pc;
    walk->is_return = 1;
}

/* Goes to the caller of the current frame. Returns 0 and sets why if it cannot. */
APART int walk_step(struct walk *walk, struct Space *space)
{
    u64 rule = 0;
    if (!walk || !space)
        return 0;
    if (walk->pc >> 63) {
        if (!in_vsyscall(walk, &rule))
            return 0;
    } else if (!rule_at(walk, space, walk->pc - walk->is_return, &rule)) {
        if (!at_trampoline(walk, &rule))
            return walk->why == WHY_ANONYMOUS && made_step(walk, space);
    }
    u32 kind = rule & 0xff;
    s64 fp = (s16)(rule >> 16);
    s64 value = (s32)(rule >> 32);
    u64 cfa;
    if (kind == KIND_SP) {
        if (SP_IS_GUESS(walk))
            return by_known_record(walk, space, RETURN_ADDRESS(rule, fp), fp);
        cfa = walk->sp + value;
    } else if (kind == KIND_FP) {
        if (!frame_pointer(walk))
            return 0;
        cfa = walk->fp + value;
    } else if (kind == KIND_ROOT) {
        walk->why = WHY_ROOT;
        return 0;
    } else if (kind == KIND_PLT) {
        cfa = PLT_CFA(walk, value);
    } else if (kind == KIND_SWITCH) {
        if (!frame_pointer(walk))
            return 0;
        walk->why = WHY_ROOT;
        if (!walk->fp)
            return 0;
        cfa = value ? walk->sp + 8 : walk->fp + 16;
    } else if (kind == KIND_SIGNAL) {
        if (!leave_signal(walk))
            return 0;
        goto found;
    } else if (kind == KIND_SP_WORD || kind == KIND_FP_WORD) {
        u64 base = walk->sp;
        if (kind == KIND_FP_WORD) {
            if (!frame_pointer(walk))
                return 0;
            base = walk->fp;
        }
        walk->why = WHY_UNREADABLE;
        if (env_read(walk->slot, base + (s64)(s16)value, &cfa))
            return 0;
        u32 plus = (u32)value >> 16;
        if (plus == DRAP)
            walk->fp_slot = base;
        else
            cfa += plus;
    } else if (kind == KIND_MISSING_HERE) {
        walk->why = WHY_ROOT;
        if (at_entry(walk))
            return 0;
        return missing_step(walk);
    } else {
        walk->why = WHY_ODD;
        return 0;
    }
    if (!to_caller(walk, cfa, RETURN_ADDRESS(rule, fp)))
        return 0;
    if (fp && cfa + 8 * fp + FP_BELOW >= walk->sp) /* An epilogue has popped the slots below sp. */
        walk->fp_slot = cfa + 8 * fp;
    walk->sp = cfa;
    walk->is_return = 1;
found:
    return has_caller(walk);
}

#endif
