/* Interprets a formula for each row; the fix runs each operation over 1024 rows at once. */
#include <stdio.h>

enum op { LOAD_X, LOAD_Y, ADD, MULTIPLY, SUBTRACT, SHIFT, HALT };
enum { ROWS = 1024 };

static const unsigned char formula[] = {LOAD_X, LOAD_Y, MULTIPLY, LOAD_X, ADD, SHIFT, LOAD_Y, SUBTRACT, LOAD_X,
					MULTIPLY, SHIFT, LOAD_Y, ADD, HALT};
static int x[ROWS], y[ROWS];

#ifdef AFTER
__attribute__((noipa)) static long evaluate_all(const unsigned char *code)
{
	static int stack[4][ROWS];
	int top = 0;
	long sum = 0;
	for (;; code++) {
		switch (*code) {
		case LOAD_X: for (int i = 0; i < ROWS; i++) stack[top][i] = x[i]; top++; break;
		case LOAD_Y: for (int i = 0; i < ROWS; i++) stack[top][i] = y[i]; top++; break;
		case ADD: top--; for (int i = 0; i < ROWS; i++) stack[top - 1][i] += stack[top][i]; break;
		case MULTIPLY: top--; for (int i = 0; i < ROWS; i++) stack[top - 1][i] *= stack[top][i]; break;
		case SUBTRACT: top--; for (int i = 0; i < ROWS; i++) stack[top - 1][i] -= stack[top][i]; break;
		case SHIFT: for (int i = 0; i < ROWS; i++) stack[top - 1][i] >>= 1; break;
		case HALT: for (int i = 0; i < ROWS; i++) sum += stack[top - 1][i]; return sum;
		}
	}
}
#else
__attribute__((noipa)) static int evaluate(const unsigned char *code, int x, int y)
{
	int stack[4], top = 0;
	for (;; code++) {
		switch (*code) { /* SLOW */
		case LOAD_X: stack[top++] = x; break;
		case LOAD_Y: stack[top++] = y; break;
		case ADD: top--; stack[top - 1] += stack[top]; break;
		case MULTIPLY: top--; stack[top - 1] *= stack[top]; break;
		case SUBTRACT: top--; stack[top - 1] -= stack[top]; break;
		case SHIFT: stack[top - 1] >>= 1; break;
		case HALT: return stack[top - 1];
		}
	}
}

__attribute__((noipa)) static long evaluate_all(const unsigned char *code)
{
	long sum = 0;
	for (int i = 0; i < ROWS; i++)
		sum += evaluate(code, x[i], y[i]);
	return sum;
}
#endif

int main(void)
{
	for (int i = 0; i < ROWS; i++) {
		x[i] = i % 97;
		y[i] = i % 61;
	}
	long sum = 0;
	for (int round = 0; round < 75000; round++) {
		x[round % ROWS] = round % 89;
		sum += evaluate_all(formula);
	}
	fprintf(stderr, "%ld\n", sum);
	return 0;
}
