/* Clean: Fourier transforms of 4096 numbers in place, with a table of roots. */
#include <complex.h>
#include <math.h>
#include <stdio.h>

enum { N = 4096 };
static double complex roots[N / 2], values[N];

__attribute__((noipa)) static void transform(void)
{
	for (unsigned i = 1, j = 0; i < N; i++) {
		unsigned bit = N >> 1;
		for (; j & bit; bit >>= 1)
			j ^= bit;
		j ^= bit;
		if (i < j) {
			double complex kept = values[i];
			values[i] = values[j];
			values[j] = kept;
		}
	}
	for (int length = 2; length <= N; length *= 2)
		for (int begin = 0; begin < N; begin += length)
			for (int k = 0; k < length / 2; k++) {
				double complex a = values[begin + k], b = values[begin + k + length / 2];
				double complex r = roots[k * (N / length)];
				double complex turned = (creal(b) * creal(r) - cimag(b) * cimag(r)) + (creal(b) * cimag(r) + cimag(b) * creal(r)) * I;
				values[begin + k] = (a + turned) * 0.7;
				values[begin + k + length / 2] = (a - turned) * 0.7;
			}
}

int main(void)
{
	for (int i = 0; i < N / 2; i++)
		roots[i] = cexp(-2 * M_PI * I * i / N);
	for (int i = 0; i < N; i++)
		values[i] = i % 17;
	for (int round = 0; round < 9000; round++)
		transform();
	fprintf(stderr, "%g\n", creal(values[5]));
	return 0;
}
