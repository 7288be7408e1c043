/* Reads one word in each of 32768 pages of 4 KiB, over and over; the fix asks for huge pages. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGES = 32768, PAGE = 4096 };

static unsigned order[PAGES];

__attribute__((noipa)) static unsigned long sum_heads(const char *pool)
{
	unsigned long sum = 0;
	for (int i = 0; i < PAGES; i++)
		sum += *(const unsigned *)(pool + order[i]); /* SLOW */
	return sum;
}

int main(void)
{
	char *pool = aligned_alloc(2 << 20, (size_t)PAGES * PAGE);
#ifdef AFTER
	madvise(pool, (size_t)PAGES * PAGE, MADV_HUGEPAGE);
#else
	madvise(pool, (size_t)PAGES * PAGE, MADV_NOHUGEPAGE);
#endif
	unsigned seed = 1;
	for (unsigned i = 0; i < PAGES; i++) {
		order[i] = i * PAGE + (i * 7919 % 64) * 64;
		*(unsigned *)(pool + order[i]) = i;
	}
	for (unsigned i = PAGES - 1; i; i--) {
		seed = seed * 1664525 + 1013904223;
		unsigned other = (seed >> 8) % (i + 1), kept = order[i];
		order[i] = order[other];
		order[other] = kept;
	}
	unsigned long sum = 0;
	for (int round = 0; round < 6000; round++)
		sum += sum_heads(pool);
	fprintf(stderr, "%lu\n", sum);
	return 0;
}
