/* The walker of bpf/walk.h as a program: reads files' tables, mappings and samples, writes what it finds.
 *
 * From standard input, as words: the number of files; for each the size of struct File, that structure, the bytes of its
 * chunk and these; a struct Space; then regions of code and samples as sampled.c writes them, until one of zeros. To standard output, for each
 * sample: why it ended, the number of frames, the frames. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned char u8;
typedef unsigned short u16;
typedef signed char s8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef short s16;
typedef int s32;
typedef long long s64;
#define INLINE static inline
#define APART static
#define OPAQUE(value) asm volatile("" : "+r"(value))

#include "wire.h"

enum { FILES = 64 };
static struct File files[FILES];
static u8 *chunks[FILES];
static u64 *stack;
static u64 stack_base, stack_words;

static int env_read(u32 slot, u64 at, u64 *value)
{
    u64 offset = at - stack_base;
    if (offset > 8 * stack_words - 8 || stack_words == 0)
        return -1;
    memcpy(value, (u8 *)stack + offset, 8);
    return 0;
}

enum { REGIONS = 8 };
static struct { u64 at, words, *code; } regions[REGIONS];

static u64 env_return(u64 at)
{
    (void)at;
    return 0;
}

static u64 env_stepped(u64 pc)
{
    (void)pc;
    return 0;
}

static int env_peek(u64 at, u64 *value)
{
    for (int i = 0; i < REGIONS; i++) {
        u64 offset = at - regions[i].at;
        if (regions[i].words && offset <= 8 * regions[i].words - 8) {
            memcpy(value, (u8 *)regions[i].code + offset, 8);
            return 0;
        }
    }
    return -1;
}

static struct File *env_file(u32 number)
{
    return number < FILES ? &files[number] : 0;
}

static const u8 *env_chunk(u32 number)
{
    return number < FILES ? chunks[number] : 0;
}

static struct RuleCache *env_cache(void)
{
    static struct RuleCache cache;
    return &cache;
}

#include "walk.h"

#ifdef HAS_LINK_REGISTER
enum { REGISTERS = 33, STACK_POINTER = 31 };
#else
enum { REGISTERS = 17, STACK_POINTER = 7 };
#endif

static void get(void *to, size_t size)
{
    if (fread(to, 1, size, stdin) != size)
        exit(3);
}

int main(void)
{
    static struct Space space;
    u64 count, size;
    get(&count, 8);
    for (u64 i = 0; i < count; i++) {
        struct File file;
        get(&file, sizeof file);
        get(&size, 8);
        if (i + FILE_FIRST >= FILES || size > CHUNK_BYTES)
            return 4;
        chunks[i + FILE_FIRST] = calloc(1, CHUNK_BYTES);
        get(chunks[i + FILE_FIRST], size);
        file.chunk = i + FILE_FIRST;
        files[i + FILE_FIRST] = file;
    }
    get(&space, sizeof space);
    get(&count, 8);
    for (u64 i = 0; i < count && i < REGIONS; i++) {
        get(&regions[i].at, 16);
        regions[i].code = malloc(8 * regions[i].words);
        get(regions[i].code, 8 * regions[i].words);
    }
    for (;;) {
        u64 head[REGISTERS + 1], frames[MAX_FRAMES];
        get(head, sizeof head);
        if (!head[REGISTERS - 1])
            return 0;
        stack_base = head[STACK_POINTER];
        stack_words = head[REGISTERS];
        stack = malloc(8 * stack_words);
        get(stack, 8 * stack_words);
#ifdef HAS_LINK_REGISTER
        struct walk walk = { .pc = head[REGISTERS - 1], .sp = stack_base, .fp = head[29], .link = head[30] };
#else
        struct walk walk = { .pc = head[REGISTERS - 1], .sp = stack_base, .fp = head[6] };
#endif
        for (walk.count = 0; walk.count < MAX_FRAMES;) {
            if (IS_SCANNING(&walk)) {
                if (!scan_step(&walk, &space))
                    break;
                continue;
            }
            frames[walk.count++] = walk.is_return ? walk.pc : walk.pc | FRAME_NO_RETURN;
            walk.why = WHY_TOO_DEEP;
            if (!walk_step(&walk, &space))
                break;
        }
        u64 result[2] = { walk.why, walk.count };
        fwrite(result, 8, 2, stdout);
        fwrite(frames, 8, walk.count, stdout);
        free(stack);
    }
}
