/* A loop whose time goes into one load that misses the caches, in a function that was inlined, beside a call of another library:
 * slow_spot SECONDS. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CELLS (1u << 19)

struct cell {
    struct cell *next;
    uint64_t padding[7];
};

static struct cell cells[CELLS];
struct cell *shared_place = cells;

static inline struct cell *take(struct cell *cell)
{
    return cell->next; /* SLOW */
}

__attribute__((noinline, noclone)) uint64_t spot(uint64_t rounds)
{
    uint64_t sum = 0;
    struct cell *cell = shared_place;
    for (uint64_t i = 0; i < rounds; i++) {
        sum += (i ^ sum) >> 3;
        cell = take(cell);
    }
    shared_place = cell;
    return sum + (uint64_t)rand();
}

int main(int argc, char **argv)
{
    clock_t end = clock() + (clock_t)((argc > 1 ? atof(argv[1]) : 1.0) * CLOCKS_PER_SEC);
    uint64_t sum = 0;
    /* Steps of an odd number through a power of two touch every cell, each far from the one before. */
    for (uint32_t i = 0; i < CELLS; i++)
        cells[i].next = &cells[(i + 0x9e375u) % CELLS];
    while (clock() < end)
        sum ^= spot(100000);
    printf("%lu\n", (unsigned long)sum);
    return 0;
}
