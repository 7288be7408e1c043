/* Clean: binary search in a sorted table of 4 KiB without jumps on the data. */
#include <stdio.h>

enum { COUNT = 1024 };

static unsigned table[COUNT];

__attribute__((noipa)) static unsigned rank_of(unsigned value)
{
	const unsigned *base = table;
	for (unsigned half = COUNT / 2; half; half /= 2)
		base += (base[half - 1] < value) * half;
	return base - table;
}

int main(void)
{
	for (unsigned i = 0; i < COUNT; i++)
		table[i] = i * 4000000u;
	unsigned seed = 1;
	unsigned long sum = 0;
	for (int i = 0; i < 150000000; i++) {
		seed = seed * 1664525 + 1013904223;
		sum += rank_of(seed);
	}
	fprintf(stderr, "%lu\n", sum);
	return 0;
}
