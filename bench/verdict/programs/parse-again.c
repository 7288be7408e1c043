/* Parses its list of limits for each request; the fix parses it once. */
#include <stdio.h>
#include <stdlib.h>

enum { LIMITS = 64 };

static char text[LIMITS * 16];

struct limits {
	double of[LIMITS];
};

static void parse_limits(struct limits *limits)
{
	char *at = text;
	for (int i = 0; i < LIMITS; i++)
		limits->of[i] = strtod(at, &at); /* SLOW */
}

__attribute__((noipa)) static double charge(unsigned request)
{
#ifdef AFTER
	static struct limits limits;
	static int ready;
	if (!ready++)
		parse_limits(&limits);
#else
	struct limits limits;
	parse_limits(&limits);
#endif
	return limits.of[request % LIMITS] * (request & 15);
}

int main(void)
{
	char *at = text;
	for (int i = 0; i < LIMITS; i++)
		at += sprintf(at, "%d.%03d ", i * 37 % 1000, i * 91 % 1000);
	double sum = 0;
	for (unsigned request = 0; request < 400000; request++)
		sum += charge(request);
	fprintf(stderr, "%.3f\n", sum);
	return 0;
}
