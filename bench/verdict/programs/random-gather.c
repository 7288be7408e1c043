/* Reads one field of records of 64 bytes at random places of 256 MiB; the fix keeps the field in an array of its own. */
#include <stdio.h>
#include <stdlib.h>

enum { RECORDS = 4 << 20, READS = 80000000 };

struct record {
	unsigned char level;
	char name[63];
};

#ifdef AFTER
static unsigned char levels[RECORDS];
#else
static struct record *records;
#endif

__attribute__((noipa)) static long sum_levels(unsigned reads)
{
	long sum = 0;
	unsigned seed = 1;
	for (unsigned i = 0; i < reads; i++) {
		seed = seed * 1664525 + 1013904223;
#ifdef AFTER
		sum += levels[seed >> 10];
#else
		sum += records[seed >> 10].level; /* SLOW */
#endif
	}
	return sum;
}

int main(void)
{
#ifndef AFTER
	records = calloc(RECORDS, sizeof *records);
#endif
	for (unsigned i = 0; i < RECORDS; i++)
#ifdef AFTER
		levels[i] = i * 31;
#else
		records[i].level = i * 31;
#endif
	fprintf(stderr, "%ld\n", sum_levels(READS));
	return 0;
}
