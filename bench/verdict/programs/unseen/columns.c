/* Adds up a matrix column by column, each step to another page; the fix goes by rows. */
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 6000, COLUMNS = 6000 };

__attribute__((noipa)) static double sum_all(const double *cells)
{
	double sum = 0;
#ifdef AFTER
	for (int row = 0; row < ROWS; row++)
		for (int column = 0; column < COLUMNS; column++)
			sum += cells[(long)row * COLUMNS + column];
#else
	for (int column = 0; column < COLUMNS; column++)
		for (int row = 0; row < ROWS; row++)
			sum += cells[(long)row * COLUMNS + column]; /* SLOW */
#endif
	return sum;
}

int main(void)
{
	double *cells = malloc(sizeof(double) * ROWS * COLUMNS);
	for (long i = 0; i < (long)ROWS * COLUMNS; i++)
		cells[i] = i % 7;
	double sum = 0;
	for (int round = 0; round < 4; round++)
		sum += sum_all(cells);
	fprintf(stderr, "%.0f\n", sum);
	free(cells);
	return 0;
}
