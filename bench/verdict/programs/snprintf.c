/* Formats integers with snprintf; the fix writes their digits. */
#include <stdio.h>
#include <string.h>

#ifdef AFTER
static int digits(char *to, unsigned value)
{
	char reversed[12];
	int count = 0;
	do
		reversed[count++] = '0' + value % 10;
	while (value /= 10);
	for (int i = 0; i < count; i++)
		to[i] = reversed[count - 1 - i];
	return count;
}
#endif

__attribute__((noipa)) static int write_row(char *to, unsigned a, unsigned b, unsigned c)
{
#ifdef AFTER
	char *at = to;
	at += digits(at, a);
	*at++ = ',';
	at += digits(at, b);
	*at++ = ',';
	at += digits(at, c);
	*at++ = '\n';
	return at - to;
#else
	return snprintf(to, 64, "%u,%u,%u\n", a, b, c); /* SLOW */
#endif
}

int main(void)
{
	char row[64];
	unsigned long sum = 0;
	for (unsigned i = 0; i < 14000000; i++) {
		int length = write_row(row, i, i * 7919, i % 1000);
		sum += length + row[length - 2];
	}
	fprintf(stderr, "%lu\n", sum);
	return 0;
}
