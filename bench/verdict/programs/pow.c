/* Raises to the third power by pow(); the fix multiplies. */
#include <math.h>
#include <stdio.h>

#ifdef AFTER
#define CUBE(x) ((x) * (x) * (x))
#else
#define CUBE(x) pow((x), exponent)
#endif

__attribute__((noipa)) static double energy(const double *speeds, int count, double exponent)
{
	double sum = 0;
	for (int i = 0; i < count; i++)
		sum += CUBE(speeds[i]); /* SLOW */
	(void)exponent;
	return sum;
}

int main(int count, char **arguments)
{
	(void)arguments;
	static double speeds[4096];
	for (int i = 0; i < 4096; i++)
		speeds[i] = (i % 256) * 0.25;
	double sum = 0;
	for (int round = 0; round < 20000; round++)
		sum += energy(speeds, 4096, count + 2);
	fprintf(stderr, "%.0f\n", sum);
	return 0;
}
