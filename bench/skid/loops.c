/* What a compiler makes of ordinary loops that are slow at one known place: loops KIND SECONDS.
 *
 * The place is told by its source line, marked SLOW. */
#include <math.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SIZE (1u << 22)
#define LOOP __attribute__((noinline, noclone)) static

struct node {
    struct node *next;
    uint64_t key, value, padding[5];
};

static struct node *nodes, **table;
static uint32_t *index_of;
static double *numbers;
static atomic_uint_fast64_t counter;
volatile uint64_t sink, divisor = 1000003;

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* A list in random order: what is read first of each node misses the caches, and the step to the next one no more. */
LOOP uint64_t list(uint64_t n)
{
    uint64_t sum = 0;
    struct node *node = nodes;
    for (uint64_t i = 0; i < n; i++) {
        sum += node->value * 3 + (sum >> 5); /* SLOW */
        node = node->next;
    }
    nodes = node;
    return sum;
}

/* The load is a part of the compare. */
LOOP uint64_t search(uint64_t n)
{
    uint64_t found = 0, state = 88172645463325252ull;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t at = next_random(&state) & (SIZE / 4 - 1);
        if (nodes[at].key == 77) /* SLOW */
            found += i;
    }
    return found;
}

/* A table of pointers into memory. */
LOOP uint64_t indirect(uint64_t n)
{
    uint64_t sum = 0, state = 362436069;
    for (uint64_t i = 0; i < n; i++) {
        struct node *node = table[i & 1023];
        sum ^= node[next_random(&state) & (SIZE / 8 - 1)].value; /* SLOW */
    }
    return sum;
}

LOOP uint64_t modulo(uint64_t n, uint64_t by)
{
    uint64_t sum = 1;
    for (uint64_t i = 1; i <= n; i++) {
        uint64_t x = sum * 6364136223846793005ull + i;
        sum = (x >> 1) % by; /* SLOW */
    }
    return sum;
}

LOOP double norm(uint64_t n)
{
    double sum = 1.0;
    for (uint64_t i = 0; i < n; i++) {
        double x = numbers[i & 1023];
        sum = sqrt(sum + x * x); /* SLOW */
    }
    return sum;
}

LOOP double quotients(uint64_t n)
{
    double sum = 1.0;
    for (uint64_t i = 0; i < n; i++) {
        double x = numbers[i & 1023] + 2.0;
        sum = x / (sum + 1.0); /* SLOW */
    }
    return sum;
}

LOOP uint64_t count(uint64_t n)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        sum += i ^ (sum << 3);
        atomic_fetch_add(&counter, 1); /* SLOW */
    }
    return sum;
}

static void prepare(void)
{
    nodes = aligned_alloc(64, (size_t)SIZE / 4 * sizeof *nodes);
    index_of = malloc(SIZE / 4 * sizeof *index_of);
    numbers = malloc(1024 * sizeof *numbers);
    table = malloc(1024 * sizeof *table);
    uint64_t state = 123456789;
    for (uint32_t i = 0; i < SIZE / 4; i++)
        index_of[i] = i;
    for (uint32_t i = SIZE / 4 - 1; i; i--) {
        uint32_t j = next_random(&state) % i, other = index_of[i];
        index_of[i] = index_of[j];
        index_of[j] = other;
    }
    for (uint32_t i = 0; i < SIZE / 4; i++) {
        nodes[index_of[i]].next = &nodes[index_of[(i + 1) % (SIZE / 4)]];
        nodes[i].key = i;
        nodes[i].value = i * 7;
    }
    for (uint32_t i = 0; i < 1024; i++) {
        numbers[i] = 1.0 + i * 0.25;
        table[i] = nodes + (next_random(&state) & (SIZE / 8 - 1));
    }
}

int main(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "";
    double seconds = argc > 2 ? atof(argv[2]) : 1.0;
    prepare();
    clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);
    while (clock() < end) {
        uint64_t n = 100000;
        if (!strcmp(kind, "list")) sink = list(n);
        else if (!strcmp(kind, "search")) sink = search(n);
        else if (!strcmp(kind, "indirect")) sink = indirect(n);
        else if (!strcmp(kind, "modulo")) sink = modulo(n, divisor);
        else if (!strcmp(kind, "norm")) sink = (uint64_t)norm(n);
        else if (!strcmp(kind, "quotients")) sink = (uint64_t)quotients(n);
        else if (!strcmp(kind, "count")) sink = count(n);
        else return 2;
    }
    return 0;
}
