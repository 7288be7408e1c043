/* Clean: adds up 32 KiB of floats with four vector accumulators. */
#include <stdio.h>
#include <string.h>

enum { COUNT = 8192 };
typedef float lanes __attribute__((vector_size(32)));

__attribute__((noipa)) static float sum_levels(const float *levels)
{
	lanes sums[4] = {0}, part;
	for (int i = 0; i < COUNT; i += 32)
		for (int lane = 0; lane < 4; lane++) {
			memcpy(&part, levels + i + lane * 8, sizeof part);
			sums[lane] += part;
		}
	lanes all = sums[0] + sums[1] + sums[2] + sums[3];
	float sum = 0;
	for (int i = 0; i < 8; i++)
		sum += all[i];
	return sum;
}

int main(void)
{
	static float levels[COUNT] __attribute__((aligned(64)));
	for (int i = 0; i < COUNT; i++)
		levels[i] = i % 11;
	double sum = 0;
	for (int round = 0; round < 4000000; round++) {
		levels[round % COUNT] = round % 7;
		sum += sum_levels(levels);
	}
	fprintf(stderr, "%.0f\n", sum);
	return 0;
}
