/* Writes 2 GiB of results in pieces of fresh memory before it sums them up; the fix sums up as it goes. */
#include <stdio.h>
#include <stdlib.h>

enum { CELLS = 32 << 20, GRIDS = 4 };

static inline unsigned cell(unsigned at)
{
	return at * 2654435761u >> 7;
}

__attribute__((noipa)) static unsigned long sum_grid(unsigned grid)
{
	unsigned long sum = 0;
#ifdef AFTER
	for (unsigned i = 0; i < CELLS; i++)
		sum += cell(i + grid);
#else
	unsigned *cells = malloc(CELLS * sizeof *cells);
	for (unsigned i = 0; i < CELLS; i++)
		cells[i] = cell(i + grid); /* SLOW */
	for (unsigned i = 0; i < CELLS; i++)
		sum += cells[i];
	free(cells);
#endif
	return sum;
}

int main(void)
{
	unsigned long sum = 0;
	for (unsigned grid = 0; grid < GRIDS * 4; grid++)
		sum += sum_grid(grid);
	fprintf(stderr, "%lu\n", sum);
	return 0;
}
