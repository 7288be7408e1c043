/* Clean: radix sort of 60,000 numbers, which stay in the second cache. */
#include <stdint.h>
#include <stdio.h>

enum { COUNT = 60000 };

static uint32_t input[COUNT], spare[COUNT];

__attribute__((noipa)) static void sort_numbers(uint32_t *from, uint32_t *to)
{
	for (int shift = 0; shift < 32; shift += 8) {
		uint32_t starts[256] = {0}, sum = 0;
		for (int i = 0; i < COUNT; i++)
			starts[from[i] >> shift & 255]++;
		for (int i = 0; i < 256; i++) {
			uint32_t count = starts[i];
			starts[i] = sum;
			sum += count;
		}
		for (int i = 0; i < COUNT; i++)
			to[starts[from[i] >> shift & 255]++] = from[i];
		uint32_t *kept = from;
		from = to;
		to = kept;
	}
}

int main(void)
{
	uint64_t sum = 0;
	uint32_t seed = 1;
	for (int round = 0; round < 2500; round++) {
		for (int i = 0; i < COUNT; i++)
			input[i] = seed = seed * 1664525 + 1013904223;
		sort_numbers(input, spare);
		sum += input[COUNT / 2];
	}
	fprintf(stderr, "%lu\n", sum);
	return 0;
}
