/* A condition on random values that no predictor can know; the fix computes with a mask. */
#include <stdio.h>

enum { VALUES = 1 << 20 };

static unsigned char values[VALUES];

__attribute__((noipa)) static long sum_large(const unsigned char *values, int count)
{
	long sum = 0;
	for (int i = 0; i < count; i++) {
#ifdef AFTER
		sum += values[i] & -(long)(values[i] >= 128);
#else
		if (values[i] >= 128) { /* SLOW */
			__asm__ volatile("" : "+r"(sum)); /* keeps this a jump, as the compiler leaves it where more is done */
			sum += values[i];
		}
#endif
	}
	return sum;
}

int main(void)
{
	unsigned seed = 1;
	for (int i = 0; i < VALUES; i++) {
		seed = seed * 1664525 + 1013904223;
		values[i] = seed >> 24;
	}
	long sum = 0;
	for (int round = 0; round < 400; round++)
		sum += sum_large(values, VALUES);
	fprintf(stderr, "%ld\n", sum);
	return 0;
}
