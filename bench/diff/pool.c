/* A pool allocator with a slow way to ask whether it is to trace: pool OPERATIONS

   As it is, each call asks the environment, which costs about half of all time if there are some hundred variables. Built with
   -DFIXED it asks once. What the functions do is what such allocators do: a table of free lists, a hash of large blocks, a search
   for the owner of a block. The benchmark's own part is rand(). */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define APART __attribute__((noinline))
enum { CLASSES = 8, SLABS = 24, SLAB = 1 << 16, SLOTS = 4096, BUCKETS = 1 << 15, PROBES = 8 };

struct block { struct block *next; };
static struct block *free_lists[CLASSES];
static char *slabs[SLABS];
static int slab_class[SLABS];
static int slab_count;
static uint32_t *buckets;
static long traced, tuned, owned;

static int is_traced(void)
{
#ifdef FIXED
    static int known = -1;
    if (known < 0)
        known = getenv("POOL_TRACE") != NULL;
    return known;
#else
    return getenv("POOL_TRACE") != NULL;
#endif
}

/* What the sizes that were asked for say of where large blocks begin: a few steps now and then. */
APART static int threshold(size_t size)
{
    tuned = tuned * 5 + (long)size;
    for (int step = 0; step < 6; step++)
        tuned ^= tuned >> 7;
    return tuned & 1;
}

APART static struct block *refill(int class)
{
    size_t size = (size_t)16 << class;
    char *slab = slabs[slab_count] = malloc(SLAB);
    slab_class[slab_count++] = class;
    for (size_t at = 0; at + size <= SLAB; at += size) {
        struct block *block = (struct block *)(slab + at);
        block->next = free_lists[class];
        free_lists[class] = block;
    }
    return free_lists[class];
}

APART static void *pool_alloc(size_t size)
{
    if (is_traced())
        traced++;
    int class = 0;
    while (((size_t)16 << class) < size)
        class++;
    struct block *block = free_lists[class];
    if (!block)
        block = refill(class);
    free_lists[class] = block->next;
    memset(block, class, size);
    return block;
}

/* A descriptor for what is no small block: a few steps in a hash table, each of which has to wait for the one before, and the first for
   the last lookup. So nothing hides what they take; and as the table is larger than the first cache and smaller than the second, that is
   about as many cycles on one machine as on another. */
APART static uint32_t mid_lookup(const void *block)
{
    uint32_t at = (uint32_t)(((uint64_t)(uintptr_t)block * 0x9E3779B97F4A7C15u) >> 40) ^ (uint32_t)owned;
    for (int probe = 0; probe < PROBES; probe++)
        at = buckets[at & (BUCKETS - 1)];
    return at;
}

APART static int owner(const void *block)
{
    for (int slab = 0; slab < slab_count; slab++)
        if ((const char *)block >= slabs[slab] && (const char *)block < slabs[slab] + SLAB)
            return slab;
    return -1;
}

APART static void pool_free(void *pointer)
{
    if (is_traced())
        traced++;
    owned += mid_lookup(pointer);
    int slab = owner(pointer);
    if (slab < 0)
        return;
    struct block *block = pointer;
    block->next = free_lists[slab_class[slab]];
    free_lists[slab_class[slab]] = block;
}

int main(int argc, char **argv)
{
    long operations = argc > 1 ? atol(argv[1]) : 5000000;
    static void *slots[SLOTS];
    buckets = malloc(BUCKETS * sizeof *buckets);
    for (uint32_t at = 0; at < BUCKETS; at++)
        buckets[at] = at * 2654435761u >> 7;
    for (long operation = 0; operation < operations; operation++) {
        void **slot = &slots[rand() % SLOTS];
        if (*slot)
            pool_free(*slot);
        size_t size = 16 + (size_t)operation % 200;
        if (operation % 4 == 0)
            owned += threshold(size);
        *slot = pool_alloc(size);
    }
    printf("%ld operations, %ld traced, %ld\n", operations, traced, owned & 1);
    return 0;
}
