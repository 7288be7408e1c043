/* Clean: the Mandelbrot set, eight points at a time. */
#include <stdio.h>

typedef float lanes __attribute__((vector_size(32)));
typedef int flags __attribute__((vector_size(32)));

__attribute__((noipa)) static long count_inside(int size, int steps)
{
	long inside = 0;
	for (int row = 0; row < size; row++)
		for (int column = 0; column < size; column += 8) {
			lanes cr, zr = {0}, zi = {0};
			flags within = {0};
			float ci = 2.0f * row / size - 1.0f;
			for (int i = 0; i < 8; i++)
				cr[i] = 2.0f * (column + i) / size - 1.5f;
			for (int step = 0; step < steps; step++) {
				lanes rr = zr * zr, ii = zi * zi;
				zi = 2.0f * zr * zi + ci;
				zr = rr - ii + cr;
				within = rr + ii < 4.0f;
			}
			for (int i = 0; i < 8; i++)
				inside -= within[i];
		}
	return inside;
}

int main(void)
{
	fprintf(stderr, "%d\n", count_inside(3600, 240) > 0);
	return 0;
}
