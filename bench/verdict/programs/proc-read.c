/* Asks /proc for its memory with each item; the fix asks once in 1000 items. */
#include <stdio.h>

__attribute__((noipa)) static long resident(void)
{
	long size = 0, pages = 0;
	FILE *file = fopen("/proc/self/statm", "r"); /* SLOW */
	if (file) {
		if (fscanf(file, "%ld %ld", &size, &pages) != 2)
			pages = 0;
		fclose(file);
	}
	return pages;
}

int main(void)
{
	unsigned seed = 1;
	unsigned long sum = 0;
	long pages = 0;
	for (int item = 0; item < 160000; item++) {
#ifdef AFTER
		if (item % 1000 == 0)
#endif
			pages = resident();
		if (pages > 1 << 20)
			break;
		seed = seed * 1664525 + 1013904223;
		sum += seed >> 16;
	}
	fprintf(stderr, "%lu\n", sum);
	return 0;
}
