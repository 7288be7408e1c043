/* Seeks to each record before it reads it, which throws the buffer away; the fix seeks only where it has to. */
#include <stdio.h>
#include <stdlib.h>

enum { RECORDS = 400000, SIZE = 16 };

__attribute__((noipa)) static long read_all(FILE *file)
{
	char record[SIZE];
	long total = 0;
	for (int i = 0; i < RECORDS; i++) {
#ifndef AFTER
		fseek(file, (long)i * SIZE, SEEK_SET); /* SLOW */
#endif
		if (fread(record, SIZE, 1, file) == 1)
			total += record[3];
	}
	return total;
}

int main(void)
{
	FILE *file = fopen("records.bin", "w+");
	for (int i = 0; i < RECORDS; i++)
		fprintf(file, "%015d\n", i);
	rewind(file);
	long total = read_all(file);
	rewind(file);
	total += read_all(file);
	fprintf(stderr, "%ld\n", total);
	return fclose(file);
}
