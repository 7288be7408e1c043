/* Sorts lines by a number in their third field, which the comparison parses each time; the fix parses each line once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct line {
	char *text;
	double key;
};

static double third_field(const char *text)
{
	for (int field = 0; field < 2; field++)
		text = strchr(text, ',') + 1;
	return strtod(text, NULL); /* SLOW */
}

static double key_of(const struct line *line)
{
#ifdef AFTER
	return line->key;
#else
	return third_field(line->text);
#endif
}

static int by_price(const void *a, const void *b)
{
	double x = key_of(a), y = key_of(b);
	return x < y ? -1 : x > y;
}

static size_t load(struct line *lines, size_t count)
{
	unsigned seed = 99;
	for (size_t i = 0; i < count; i++) {
		char text[80];
		seed = seed * 1664525u + 1013904223u;
		snprintf(text, sizeof text, "A%06zu,warehouse-%u,%u.%02u,EUR", i, seed >> 28, seed >> 12, seed % 100);
		lines[i].text = strdup(text);
		lines[i].key = third_field(text);
	}
	return count;
}

int main(void)
{
	enum { COUNT = 400000 };
	struct line *lines = malloc(COUNT * sizeof *lines);
	size_t count = load(lines, COUNT);
	qsort(lines, count, sizeof *lines, by_price);
	double sum = 0;
	for (size_t i = 0; i < count; i += 1000)
		sum += third_field(lines[i].text) * (double)i;
	fprintf(stderr, "%.3f\n", sum);
	return 0;
}
