/* Clean: multiplies matrices of 256 x 256 in blocks that stay in the first cache, with vector instructions. */
#include <stdio.h>
#include <string.h>

enum { SIZE = 256, BLOCK = 32 };

static float a[SIZE][SIZE], b[SIZE][SIZE], c[SIZE][SIZE];
typedef float lanes __attribute__((vector_size(32)));

__attribute__((noipa)) static void multiply(void)
{
	for (int row = 0; row < SIZE; row += 4)
		for (int column = 0; column < SIZE; column += 16) {
			lanes sums[4][2] = {0};
			for (int k = 0; k < SIZE; k++) {
				lanes left, right;
				memcpy(&left, &b[k][column], sizeof left);
				memcpy(&right, &b[k][column + 8], sizeof right);
				for (int i = 0; i < 4; i++) {
					sums[i][0] += a[row + i][k] * left;
					sums[i][1] += a[row + i][k] * right;
				}
			}
			for (int i = 0; i < 4; i++)
				memcpy(&c[row + i][column], sums[i], sizeof sums[i]);
		}
}

int main(void)
{
	for (int i = 0; i < SIZE; i++)
		for (int k = 0; k < SIZE; k++) {
			a[i][k] = (i + k) % 7;
			b[i][k] = (i * k) % 5;
		}
	for (int round = 0; round < 3000; round++) {
		a[0][0] = round % 3;
		multiply();
	}
	fprintf(stderr, "%.0f\n", c[17][99]);
	return 0;
}
