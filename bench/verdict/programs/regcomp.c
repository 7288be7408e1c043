/* Compiles the same regular expression for each line; the fix compiles it once. */
#include <regex.h>
#include <stdio.h>

/* The rest of the work: what a fix leaves. */
__attribute__((noipa)) static unsigned long settle(unsigned long value, int steps)
{
	while (steps--) {
		value ^= value << 13;
		value ^= value >> 7;
		value ^= value << 17;
	}
	return value;
}

__attribute__((noipa)) static int is_request(const char *line)
{
#ifdef AFTER
	static regex_t pattern;
	static int ready;
	if (!ready)
		ready = !regcomp(&pattern, "^(GET|POST) /[a-z]+/([0-9]+) HTTP/1\\.[01]$", REG_EXTENDED | REG_NOSUB);
	return regexec(&pattern, line, 0, NULL, 0) == 0;
#else
	regex_t pattern;
	regcomp(&pattern, "^(GET|POST) /[a-z]+/([0-9]+) HTTP/1\\.[01]$", REG_EXTENDED | REG_NOSUB); /* SLOW */
	int matches = regexec(&pattern, line, 0, NULL, 0) == 0;
	regfree(&pattern);
	return matches;
#endif
}

int main(void)
{
	char line[64];
	int requests = 0;
	for (int i = 0; i < 80000; i++) {
		snprintf(line, sizeof line, "GET /item/%d HTTP/1.%d", i, i % 3);
		requests += is_request(line) && settle(i + 1, 1500) != 0;
	}
	fprintf(stderr, "%d\n", requests);
	return 0;
}
