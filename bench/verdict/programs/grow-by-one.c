/* Grows an array by one element at a time and copies it; the fix doubles its room. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct series {
	long *values;
	size_t count, room;
};

__attribute__((noipa)) static void record(struct series *series, long value)
{
#ifdef AFTER
	if (series->count == series->room) {
		series->room = series->room ? series->room * 2 : 16;
		series->values = realloc(series->values, series->room * sizeof *series->values);
	}
#else
	long *grown = malloc((series->count + 1) * sizeof *grown);
	if (series->count)
		memcpy(grown, series->values, series->count * sizeof *grown); /* SLOW */
	free(series->values);
	series->values = grown;
#endif
	series->values[series->count++] = value;
}

int main(void)
{
	long sum = 0;
	for (int round = 0; round < 16; round++) {
		struct series series = {0};
		for (int i = 0; i < 14000; i++)
			record(&series, i ^ round);
		for (size_t i = 0; i < series.count; i++)
			sum += series.values[i];
		free(series.values);
	}
	fprintf(stderr, "%ld\n", sum);
	return 0;
}
